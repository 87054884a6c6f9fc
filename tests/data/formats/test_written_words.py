"""The text of sentences whose words are listed."""

import pytest

from modeling_triaffine.data.formats.written_words import Row, written_text
from modeling_triaffine.data.record_checker import RecordChecker


def rows(*cells: str) -> list[Row]:
    """Rows from "ID FORM" or "ID FORM MISC"."""
    split = [cell.split(" ") for cell in cells]
    return [Row(number, form, "SpaceAfter=No" in "".join(misc)) for number, form, *misc in split]


@pytest.mark.parametrize(
    ("cells", "comment", "text", "words"),
    [
        (["1 A SpaceAfter=No", "2 , x=y|SpaceAfter=No", "3 b"], "", "A,b", ["A", ",", "b"]),
        (["1 A", "2 ,", "3 b"], "A,  b", "A,  b", ["A", ",", "b"]),
        (["1 A", "2 b"], "A b c", "A b", ["A", "b"]),  # comments that say something else
        (["1 A", "2 b"], "A c b", "A b", ["A", "b"]),
        (["1-2 don't SpaceAfter=No", "1 do", "2 n't", "3 ,"], "", "don't,", ["do", "n't", ","]),
        (["1-2 du", "1 de", "2 le", "3 roi"], "", "du roi", ["du", "du", "roi"]),
        (["1 a", "1.1 left-out", "2 b"], "", "a b", ["a", "b"]),
    ],
    ids=["space-after", "comment", "longer-comment", "other-comment", "parts-in-order", "contraction", "empty-node"],
)
def test_text_of_a_sentence_of_conllu(cells, comment, text, words):
    check = RecordChecker("a.conllu")
    written, offsets = written_text(rows(*cells), comment, check, "line 1")
    assert (written, [written[start:end] for start, end in offsets]) == (text, words)
    counted = "a.conllu: texts that differ from their words, made of the words: 1 (line 1)."
    assert check.report() == (counted if comment and comment != text else "")
