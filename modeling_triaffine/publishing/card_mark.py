"""How publishing tells a card that it may write anew from one that is somebody's own work.

The card ends with a comment, which the Hub does not show, that holds a digest of all above it.
"""

import hashlib
import re

import yaml
from huggingface_hub import ModelCard

MARK = "<!-- Written by modeling_triaffine ({digest}): it writes this card anew, unless somebody has edited it. -->"
MARK_PATTERN = re.compile(re.escape(MARK).replace(re.escape("{digest}"), "([0-9a-f]{16})") + r"\s*\Z")
# The Hub's website makes a card of front matter alone where only a licence is chosen.
FRONT_MATTER = re.compile(r"\A\s*---\s*\n(.*?\n)?---\s*(\n|\Z)", re.DOTALL)
# transformers pushes a card to fill in where there is none; nobody misses it.
TEMPLATE_PHRASE = "This model card has been automatically generated"
TEMPLATE_BLANK = "[More Information Needed]"


def mark_card(text: str) -> str:
    """The card with its mark."""
    text = text.rstrip()
    return f"{text}\n\n{MARK.format(digest=_digest(text))}\n"


def unmarked(text: str) -> str:
    """The card without its mark."""
    return MARK_PATTERN.sub("", text)


def is_ours(text: str) -> bool:
    """Whether publishing has written the card, and nobody has changed it."""
    return MARK_PATTERN.search(text) is not None and not is_edited(text)


def is_edited(text: str) -> bool:
    """Whether the card is somebody's own work: no marked one, unchanged, nor a draft without a text of its own."""
    mark = MARK_PATTERN.search(text)
    if mark:
        return mark[1] != _digest(text[: mark.start()])
    return not is_draft(text)


def is_draft(text: str) -> bool:
    """Whether the card has no text of its own: front matter alone, or the template of transformers."""
    is_template = TEMPLATE_PHRASE in text and TEMPLATE_BLANK in text
    return is_template or FRONT_MATTER.sub("", text).strip() == ""


def take_over_metadata(card: ModelCard, draft: str) -> None:
    """Puts what a draft's front matter says, such as the licence chosen on the Hub, into the metadata of `card`.

    Lists are joined, other fields are the draft's.
    """
    front_matter = FRONT_MATTER.match(draft)
    fields = yaml.safe_load(front_matter[1] or "") if front_matter else None
    for name, value in (fields if isinstance(fields, dict) else {}).items():
        own = card.data.get(name)
        if isinstance(own, list) and isinstance(value, list):
            card.data[name] = own + [item for item in value if item not in own]
        elif value:
            card.data[name] = value


def _digest(text: str) -> str:
    plain = "\n".join(text.split("\r\n")).strip()
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]
