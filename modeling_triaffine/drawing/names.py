"""Names and texts from anywhere, made short and safe to show."""

LONGEST_LABEL = 20  # characters
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def shorten(text: str, longest: int) -> str:
    """At most so many characters, the middle left out."""
    text = clean(text)
    if len(text) <= longest:
        return text
    kept = longest - 1
    return f"{text[: kept - kept // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"


def clean(text: str) -> str:
    """On one line, without characters that a terminal would act upon or an SVG must not hold."""
    return "".join(c if c.isprintable() else REPLACEMENT for c in " ".join(text.split()))
