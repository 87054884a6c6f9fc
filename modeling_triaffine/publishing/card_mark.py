"""How publishing tells a card that it wrote itself, and may write anew, from one that somebody has edited.

The card ends with a comment, which the Hub does not show, that holds a digest of all above it.
"""

import hashlib
import re

MARK = "<!-- Written by modeling_triaffine ({digest}): it writes this card anew, unless somebody has edited it. -->"
MARK_PATTERN = re.compile(re.escape(MARK).replace(re.escape("{digest}"), "([0-9a-f]{16})") + r"\s*\Z")
# transformers pushes a card to fill in where there is none; nobody misses it.
TEMPLATE_PHRASE = "This model card has been automatically generated"
TEMPLATE_BLANK = "[More Information Needed]"


def mark_card(text: str) -> str:
    """The card with its mark."""
    text = text.rstrip()
    return f"{text}\n\n{MARK.format(digest=_digest(text))}\n"


def is_edited(text: str) -> bool:
    """Whether the card is somebody's own work: neither a marked one, unchanged, nor transformers' empty template."""
    mark = MARK_PATTERN.search(text)
    if mark:
        return mark[1] != _digest(text[: mark.start()])
    return not (TEMPLATE_PHRASE in text and TEMPLATE_BLANK in text)


def _digest(text: str) -> str:
    plain = "\n".join(text.split("\r\n")).strip()
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]
