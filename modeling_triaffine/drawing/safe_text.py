"""Cleans, shortens and escapes text from any source for terminals, Markdown and HTML.

Every table, drawing, report and card uses these functions.
"""

import re
import unicodedata
from functools import lru_cache

from ..files import JOINERS

LONGEST_LABEL = 20  # characters
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Inline markup of Markdown; underscores only outside words.
_MARKUP = re.compile(r"[\\`*|<>\[\]&~$]|(?<![^\W_])_|_(?![^\W_])")
_READABLE = re.compile(r"[\w .,:/+-]+")
_CONTROLS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# Terminals disagree on the width of the characters that these merge, and on that of soft hyphens.
_MERGING = {*JOINERS, "\N{SOFT HYPHEN}", "\N{VARIATION SELECTOR-15}", "\N{VARIATION SELECTOR-16}"}


def clean(text: str) -> str:
    """`text` on one line, without characters that control a terminal or are invalid in SVG."""
    return "".join(c if c.isprintable() or c in JOINERS else REPLACEMENT for c in " ".join(text.split()))


def shorten(text: str, longest: int) -> str:
    """`text`, cleaned and cut to at most `longest` characters: an ellipsis replaces the middle."""
    text = clean(text)
    if len(text) <= longest:
        return text
    kept = longest - 1
    return f"{text[: kept - kept // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"


def markdown_text(text: str) -> str:
    """`text` on one line, escaped for Markdown."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", clean(text))


def inline_code(value: object) -> str:
    """`value` as inline code in Markdown, safe in table cells, too.

    Ordinary names stay readable in the source; in others, punctuation becomes character references.
    """
    text = clean(str(value))
    if _READABLE.fullmatch(text):
        return f"`{text}`"
    return "<code>" + re.sub(r"[^\w ]|_", lambda found: f"&#{ord(found[0])};", text) + "</code>"


@lru_cache(maxsize=4096)
def visible_character(character: str) -> tuple[str, int]:
    """Returns what to print for a character, and its width in columns.

    Wide characters take two columns, combining marks none. Controls, escape sequences and direction overrides become
    visible; joiners, soft hyphens and variation selectors are removed.
    """
    code, category = ord(character), unicodedata.category(character)
    if character in _MERGING:
        return "", 0
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + min(code, 0x21)), 1  # the control pictures, ␀ to ␟ and ␡
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return REPLACEMENT, 1
    if category in ("Mn", "Me") or 0x1160 <= code <= 0x11FF:  # the latter: vowels and finals of decomposed Hangul
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def visible(text: str) -> str:
    """`text` in its lines, with visible controls of terminals: messages quote files of strangers."""
    return "".join(c if c in "\n\t" or c in JOINERS else visible_character(c)[0] for c in text)


def visible_json(text: str) -> str:
    """Escapes the control characters that `json.dumps` leaves in JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def text_width(text: str) -> int:
    """The width of `text` in a terminal, in columns."""
    return sum(visible_character(character)[1] for character in text)
