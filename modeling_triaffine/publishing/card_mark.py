"""Recognizes the cards that publishing may replace: its own unless edited, and drafts without text.

A card written by publishing ends with a comment, invisible on the Hub, with a digest of the text above it. Another one
notes the front matter of a draft that it has replaced, for the cards that will replace it.
"""

import hashlib
import json
import re
from typing import Any

import yaml
from huggingface_hub import ModelCard

MARK = "<!-- Written by modeling_triaffine ({digest}): it writes this card anew, unless somebody has edited it. -->"
MARK_PATTERN = re.compile(re.escape(MARK).replace(re.escape("{digest}"), "([0-9a-f]{16})") + r"\s*\Z")
NOTE = "<!-- From the draft of this card: {} -->"
NOTE_PATTERN = re.compile(re.escape(NOTE).replace(re.escape("{}"), "(.*)"))
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
    """A marked card with the front matter of the draft that `earlier` is or has replaced, marked again.

    The Hub's website writes such a draft with the license chosen there.

    Lists are concatenated; other fields of the draft override those of the card.
    """
    fields = _of_draft(card) | _of_draft(earlier)
    if not fields:
        return card
    merged = ModelCard(NOTE_PATTERN.sub("", MARK_PATTERN.sub("", card)))
    for name, value in fields.items():
        own = merged.data.get(name)
        if isinstance(own, list):
            items = value if isinstance(value, list) else [value]
            merged.data[name] = own + [item for item in items if item and item not in own]
        else:
            merged.data[name] = value
    note = json.dumps(fields, default=str).replace(">", "\\u003e")  # which would end the comment
    return mark_card(f"{str(merged).rstrip()}\n\n{NOTE.format(note)}")


def _of_draft(text: str) -> dict[str, Any]:
    """The fields of a draft, or those that the card which replaced it notes."""
    if is_draft(text):
        return {name: value for name, value in _front_matter(text).items() if value}
    note = NOTE_PATTERN.search(text) if is_ours(text) else None
    return json.loads(note[1]) if note else {}


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
