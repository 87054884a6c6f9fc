"""How documents are made of sentences, and show a place in them."""

import pytest

from modeling_triaffine.data.documents import Sentence, WrittenSentence, document_of_sentences, in_context


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


def test_sentences_are_joined_with_what_separates_them():
    parts = [(" ", "", []), ("\n", "a b", [(0, 1), (2, 3)]), ("\n\n", "c", [(0, 1)]), ("", "d", [(0, 1)])]
    sentences = [WrittenSentence(gap, text, Sentence({}, "", offsets)) for gap, text, offsets in parts]
    document = document_of_sentences("x", sentences)
    assert document.text == "a b\n\ncd"
    assert [sentence.offsets for sentence in document.sentences] == [[], [(0, 1), (2, 3)], [(5, 6)], [(6, 7)]]
