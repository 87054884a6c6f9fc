"""What offsets count, found out from what tools quote."""

import pytest

from modeling_triaffine.data import CorpusError, RecordChecker
from modeling_triaffine.data.cutting import text_of
from modeling_triaffine.data.documents import Document
from tests.helpers.corpora import annotation, cut, spelled


class TestWaysOfCounting:
    """What tools count is detected from the text that they quote."""

    @pytest.mark.parametrize(
        ("text", "span"),
        [
            ("😀 to Orsk", (5, 9)),  # characters
            ("😀 to Orsk", (6, 10)),  # UTF-16 units
            ("to\r\nOrsk", (4, 8)),  # line ends as they are
            ("to\r\nOrsk", (3, 7)),  # line ends as one
            ("\ufeffto Orsk", (4, 8)),  # with the byte order mark
            ("\ufeffto Orsk", (3, 7)),  # without it
            ("\ufeffto\r\nOrsk", (3, 7)),
            ("😀\r\n\r\nOrsk", (4, 8)),  # UTF-16 units, line ends as one
        ],
    )
    def test_is_found_out(self, text, span):
        records, check = cut(text, annotation(span, quote="Orsk"))
        assert spelled(records[-1]) == [("Orsk", "X")]
        assert "\ufeff" not in records[0]["tokens"][0]
        converted = text[slice(*span)] != "Orsk"
        assert ("texts with other character counts converted: 1" in check.report()) == converted

    def test_a_quote_may_have_the_byte_order_mark(self):
        (record,), check = cut("\ufeffOrsk", annotation((0, 5), quote="\ufeffOrsk"))
        assert (spelled(record), check.report()) == ([("Orsk", "X")], "")

    @pytest.mark.parametrize(
        ("text", "span", "count"),
        [
            ("😀 é\r\nOrsk", (6, 10), "utf16"),
            ("😀 é\r\n😀Orsk", (7, 11), "utf16_lf"),
            ("😀 é\r\nOrsk", (9, 13), "bytes"),
            ("😀 é\r\nOrsk", (8, 12), "bytes_lf"),
            ("😀 é\r\nOrsk", (4, 8), "characters_lf"),
        ],
    )
    def test_is_found_out_or_named(self, text, span, count):
        """By the quote, or without one by name; then there is nothing to say."""
        for quote, named in (("Orsk", None), (None, count)):
            check = RecordChecker("a.txt", offsets=named)
            document = text_of(Document("a", "a", text, [annotation(span, quote=quote)]), check)
            (entity,) = document["entities"]
            assert (document["text"], text[entity["start"] : entity["end"]]) == (text, "Orsk")
            assert bool(check.report()) == (named is None)

    def test_is_told_if_only_some_are_quoted(self):
        annotations = [annotation((6, 10), quote="Orsk"), annotation((0, 2), quote=None)]
        with pytest.raises(CorpusError, match=r"quotes 'Orsk', but .* fit if they counted UTF-16 .* --offsets utf16"):
            text_of(Document("a", "a", "😀 to Orsk again", annotations), RecordChecker("a.txt"))

    def test_before_the_text(self):
        document = Document("a", "a", "😀 Orsk", [annotation((-1, 3))])
        with pytest.raises(CorpusError, match=r"runs from -1 to 3"):
            text_of(document, RecordChecker("a.txt", offsets="utf16"))

    def test_named_wrongly(self):
        document = Document("a", "a", "😀 Orsk", [annotation((1, 3))])
        with pytest.raises(CorpusError, match=r"^a\.txt, a: an offset is inside of a character, if it counts UTF-16"):
            text_of(document, RecordChecker("a.txt", offsets="utf16"))

    @pytest.mark.parametrize(
        ("texts", "found"),
        [
            ([("😀 to Orsk.", (6, 10)), ("😀 Orsk ran", (3, 7))], "but none if offsets count UTF-16 units"),
            ([("😀张三去了北京，他说", (3, 5))], "entities whose offsets cannot be checked"),
            ([("😀 to Orsk now", (5, 9))], ""),  # of UTF-16 units, it would begin with the space
            ([("😀 10mg é Orsk now", (4, 6)), ("😀 to Orsk now", (5, 9))], ""),
            ([("to Orsk 😀", (3, 7)), ("plain Orsk", (6, 10))], ""),  # which no count moves
            ([("to\r\nOrsk, and", (3, 7))], r"but none if offsets count characters, as Python counts, but \r\n"),
        ],
    )
    def test_is_compared_where_nothing_is_quoted(self, texts, found):
        check = RecordChecker("a.txt")
        for text, span in texts:
            text_of(Document("a", "a", text, [annotation(span)]), check)
        report = check.report()
        assert found in report if found else not report
        assert ("--offsets" in report) == bool(found)

    def test_what_is_outside_of_the_text_fits_another_count(self):
        with pytest.raises(CorpusError, match=r"runs from 6 to 10, .* 9 characters.* --offsets utf16, offsets='utf16'"):
            cut("😀 to Orsk", annotation((6, 10)))

    def test_is_not_guessed_without_what_was_noted(self):
        (record,), _ = cut("😀 to Orsk", annotation((6, 8)))
        assert spelled(record) == []
        with pytest.raises(CorpusError, match=r"runs from 6 to 10, .* 9 characters"):
            cut("😀 to Orsk", annotation((6, 10)))

    def test_one_way_must_fit_all(self):
        with pytest.raises(CorpusError) as caught:
            cut("😀 to Orsk", annotation((6, 10), quote="Orsk"), annotation((2, 4), quote="to"))
        assert str(caught.value).startswith("a.txt, line 1: field 'T1' runs from 6 to 10, the text has 9 characters.")

    @pytest.mark.parametrize("quote", ["a b", "a   b", "a\nb", "a\\nb", " a b "])
    def test_white_space_of_what_was_noted_makes_no_difference(self, quote):
        (record,), _ = cut("a\nb", annotation((0, 3), quote=quote))
        assert spelled(record) == [("a b", "X")]
