"""Recognizes the cards that publishing may replace: its own unless edited, and drafts without text.

A card written by publishing ends with a comment, invisible on the Hub, with a digest of the text above it.
"""

import hashlib
import re
from typing import Any

import yaml
from huggingface_hub import ModelCard

MARK = "<!-- Written by modeling_triaffine ({digest}): it writes this card anew, unless somebody has edited it. -->"
MARK_PATTERN = re.compile(re.escape(MARK).replace(re.escape("{digest}"), "([0-9a-f]{16})") + r"\s*\Z")
# The Hub's website writes a card of front matter only if the user chooses a license for a new repository.
FRONT_MATTER = re.compile(r"\A\s*---\s*\n(.*?\n)?---\s*(\n|\Z)", re.DOTALL)
# The template that transformers pushes if there is no card.
TEMPLATE_PHRASE = "This model card has been automatically generated"
TEMPLATE_BLANK = "[More Information Needed]"


def card_text(content: bytes) -> str:
    """The text of a card's file; one that is not UTF-8 was written by somebody else, and so counts as edited."""
    return content.decode("utf-8", "replace")


def mark_card(text: str) -> str:
    """The card with its mark."""
    text = text.rstrip()
    return f"{text}\n\n{MARK.format(digest=_digest(text))}\n"


def is_ours(text: str) -> bool:
    """Whether publishing wrote the card, and nobody has edited it since."""
    mark = MARK_PATTERN.search(text)
    return mark is not None and mark[1] == _digest(text[: mark.start()])


def is_edited(text: str) -> bool:
    """Whether somebody wrote or edited the card: it is neither an unchanged one of publishing nor a draft."""
    return not is_ours(text) and not is_draft(text)


def is_draft(text: str) -> bool:
    """Whether the card has no text of its own: front matter only, or the template of transformers."""
    is_template = TEMPLATE_PHRASE in text and TEMPLATE_BLANK in text
    return is_template or FRONT_MATTER.sub("", text).strip() == ""


def merge_cards(card: str, earlier: str) -> str:
    """A marked card with what somebody chose in the earlier one, marked again: the front matter of a draft, a license.

    The Hub's website writes such a draft with the license chosen there.

    Lists are concatenated; other fields of the draft override those of the card.
    """
    fields = _front_matter(earlier)
    if not is_draft(earlier):
        fields = {"license": fields.get("license") if is_ours(earlier) else None}
    merged = ModelCard(MARK_PATTERN.sub("", card))
    for name, value in fields.items():
        own = merged.data.get(name)
        if isinstance(own, list):
            items = value if isinstance(value, list) else [value]
            merged.data[name] = own + [item for item in items if item and item not in own]
        elif value and (own is None or is_draft(earlier)):
            merged.data[name] = value
    return mark_card(str(merged)) if any(fields.values()) else card


def _front_matter(text: str) -> dict[str, Any]:
    """The fields of a card's front matter; empty if it has none that can be parsed."""
    block = FRONT_MATTER.match(text)
    try:
        fields = yaml.safe_load(block[1] or "") if block else None
    except yaml.YAMLError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _digest(text: str) -> str:
    plain = "\n".join(text.split("\r\n")).strip()
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]
