"""Text from anywhere made short and safe to show: in a terminal, in Markdown, in HTML.

Every table, drawing, report and card escapes with the functions of this file.
"""

import html
import re
import unicodedata

LONGEST_LABEL = 20  # characters
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Characters that Markdown reads as markup within a line; underscores only where no word goes on at both sides.
_MARKUP = re.compile(r"[\\`*|<>\[\]&~$]|(?<![^\W_])_|_(?![^\W_])")
_READABLE = re.compile(r"[\w .,:/+-]+")
# Joiners and variation selectors would merge characters into one of another width: terminals disagree on which.
_JOINING = {
    "\N{ZERO WIDTH JOINER}",
    "\N{ZERO WIDTH NON-JOINER}",
    "\N{VARIATION SELECTOR-15}",
    "\N{VARIATION SELECTOR-16}",
}


def clean(text: str) -> str:
    """`text` on one line, without characters that a terminal would act upon or that an SVG must not contain."""
    return "".join(c if c.isprintable() else REPLACEMENT for c in " ".join(text.split()))


def shorten(text: str, longest: int) -> str:
    """`text`, cleaned, in at most `longest` characters: an ellipsis replaces the middle."""
    text = clean(text)
    if len(text) <= longest:
        return text
    kept = longest - 1
    return f"{text[: kept - kept // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"


def markdown_text(text: str) -> str:
    """`text` as Markdown of one line in which every character stands for itself."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", clean(text))


def inline_code(value: object) -> str:
    """`value` as inline code in Markdown; none of its characters ends the code, a table cell or the line.

    Ordinary names stay readable in the source; in all others, punctuation becomes character references.
    """
    text = clean(str(value))
    if _READABLE.fullmatch(text):
        return f"`{text}`"
    return "<code>" + re.sub(r"[^\w ]|_", lambda found: f"&#{ord(found[0])};", text) + "</code>"


def html_text(text: str) -> str:
    """`text` as HTML in which every character stands for itself, in an element or in a quoted attribute."""
    return html.escape(clean(text))


def visible_character(character: str) -> tuple[str, int]:
    """What a terminal can show for a character, and its width in columns.

    Wide characters take two columns. Combining marks take none: they belong to the character before them. Controls,
    escape sequences and direction overrides become something visible; joiners disappear.
    """
    code, category = ord(character), unicodedata.category(character)
    if character in _JOINING:
        return "", 0
    if code < 0x20:
        return chr(0x2400 + code), 1  # the control pictures, ␀ to ␟
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}", 1
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return REPLACEMENT, 1
    if category in ("Mn", "Me") or 0x1160 <= code <= 0x11FF:  # the latter: vowels and finals of decomposed Hangul
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def text_width(text: str) -> int:
    """The width of `text` in a terminal, in columns."""
    return sum(visible_character(character)[1] for character in text)
