"""How documents show a place in them."""

import pytest

from modeling_triaffine.data.documents import in_context


@pytest.mark.parametrize(
    ("text", "span", "shown"),
    [
        ("the mayor", (0, 3), "[the] mayor"),
        ("a" * 21 + "\nb", (21, 22), "…" + "a" * 20 + "[ ]b"),
        ("b" + "a" * 21, (0, 1), "[b]" + "a" * 20 + "…"),
        ("a" * 30 + "b" * 30, (0, 60), f"[{'a' * 20}…{'b' * 20}]"),
        ("in \u200bParis\u2060\u200c", (4, 9), "in \\u200b[Paris]\\u2060\u200c"),
    ],
)
def test_in_context(text, span, shown):
    assert in_context(text, *span) == shown
