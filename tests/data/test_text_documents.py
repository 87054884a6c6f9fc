"""Texts annotated by characters: how they are cut and what becomes of their entities, whatever the text is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker
from modeling_triaffine.data.alignment import INVISIBLE_SPACES
from modeling_triaffine.data.cutting import sentences_of, text_of
from modeling_triaffine.data.documents import Annotation, Document, in_context
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import spelled


def annotation(*fragments, kind="X", quote=None):
    return Annotation(name="T1", fragments=fragments, type=kind, quote=quote, where="line 1")


def cut(text, *annotations, labels=None, **options):
    check = RecordChecker("a.txt", labels)
    return list(sentences_of(Document("a", "a", text, annotations), check, **options)), check


class TestEntities:
    def test_a_border_inside_a_word_is_shown_with_the_text_around(self):
        text = "It is the very long story of wild-type CD28-mediated growth."
        _, check = cut(text, annotation((39, 41), kind="protein"))
        assert check.report() == (
            "a.txt: sentences: 1; entities kept: 0 of 1; entities with a boundary inside a word dropped: 1 "
            "(a: protein … story of wild-type [CD]28-mediated growth.), of which "
            "--word_splitter letters_and_digits would keep 1; labels that lose more than 5 %: protein 1 of 1 (all)."
        )

    @pytest.mark.parametrize(
        ("text", "quote", "points"),
        [
            ("caf\u00e9", "cafe\u0301", "character 3 on: U+0065 U+0301 is not U+00E9"),
            ("\u041ersk", "Orsk", "character 0 on: U+004F is not U+041E"),
            ("IL\u20132", "IL-2", "character 2 on: U+002D is not U+2013"),
            ("Or\u00adsk", "Orsk", "character 2 on: nothing is not U+00AD"),
        ],
    )
    def test_a_quote_that_looks_alike_is_shown_by_code_points(self, text, quote, points):
        with pytest.raises(CorpusError, match=f"quotes .*They differ from {re.escape(points)}. Give the text"):
            cut(text, annotation((0, len(text)), quote=quote))

    def test_a_quote_that_looks_otherwise_is_shown_as_it_is(self):
        with pytest.raises(CorpusError, match=r"quotes 'Omsk', but from 0 to 4 the text is '\[Orsk\]'\. Give the text"):
            cut("Orsk", annotation((0, 4), quote="Omsk"))

    def test_a_label_that_looks_like_one_that_is_allowed(self):
        with pytest.raises(CorpusError, match=r"character 0 on: U\+0421 is not U\+0043\. Correct it"):
            cut("Orsk", annotation((0, 4), kind="\u0421ity"), labels=["City", "Person"])

    def test_three_examples_stand_for_all(self):
        _, check = cut("abcd", *[annotation((0, end)) for end in (1, 2, 3, 1)])
        assert "boundary inside a word dropped: 4 (a: X [a]bcd | a: X [ab]cd | a: X [abc]d | …)" in check.report()

    def test_over_the_end_of_a_sentence(self):
        text = "He ran. They sat."
        records, check = cut(text, annotation((3, 12)))
        assert [spelled(record) for record in records] == [[], []]
        assert "entities across sentences dropped: 1 (a: X He [ran. They] sat.)" in check.report()
        (record,), check = cut(text, annotation((3, 12)), sentence_splitter="none")
        assert spelled(record) == [("ran . They", "X")]

    def test_white_space_alone_is_dropped(self):
        _, check = cut("a  b", annotation((1, 3)))
        assert "entities of white space alone dropped: 1 (line 1: T1)" in check.report()

    def test_zero_width_spaces_are_white_space(self):
        """As for the word splitters."""
        split = word_splitter("whitespace")
        options = {"word_splitter": lambda text: split(text.replace("\u200b", " ").replace("\ufeff", " "))}
        text = "in \u200bParis\ufeff"
        for start, end in ((3, 10), (4, 9)):
            (record,), check = cut(text, annotation((start, end)), **options)
            assert (spelled(record), check.report()) == ([("Paris", "X")], "")
            document = text_of(Document("a", "a", text, [annotation((start, end))]), check)
            assert document["entities"] == [{"start": 4, "end": 9, "type": "X"}]
        assert "entities of white space alone dropped: 1" in cut(text, annotation((3, 4)), **options)[1].report()
        (record,), _ = cut("New\u200bYork", annotation((0, 3), (4, 8)), **options)
        assert spelled(record) == [("New York", "X")]
        assert "texts without words ignored: 1" in cut("\u200b\ufeff", **options)[1].report()


class TestText:
    def test_is_cut_by_the_splitters_given(self):
        records, _ = cut("one-two\nthree. Four", word_splitter=word_splitter("whitespace"), sentence_splitter="lines")
        assert [record["tokens"] for record in records] == [["one-two"], ["three.", "Four"]]

    @pytest.mark.parametrize(("word", "splitter", "size"), [("a ", "punctuation", 300), ("a. ", "none", 600)])
    def test_long_sentences_stay_whole(self, word, splitter, size):
        """The model reads them in windows."""
        inside = annotation((255 * len(word), 260 * len(word) - 1))
        (record,), check = cut(word * 300, inside, sentence_splitter=splitter)
        assert len(record["tokens"]) == size
        assert len(record["entities"]) == 1
        assert not check.report()

    def test_what_would_keep_entities_inside_words_is_said_and_labels_that_vanish_are_named(self):
        text = "Take 10mg, 20ml or ובית"
        spans = {"Number": [(5, 7), (11, 13)], "Unit": [(7, 9)], "Place": [(20, 23)], "Word": [(0, 4), (0, 7)]}
        annotations = [annotation(span, kind=kind) for kind, of_kind in spans.items() for span in of_kind]
        _, check = cut(text, *annotations)
        kept = ", of which --word_splitter letters_and_digits would keep 4, --word_splitter characters would keep 5"
        assert kept in check.report()
        much = "Number 2 of 2 (all), Place 1 of 1 (all), Unit 1 of 1 (all), Word 1 of 2."
        assert check.report().endswith(f"labels that lose more than 5 %: {much}")
        _, check = cut(text, *annotations, word_splitter=word_splitter("characters"))
        assert check.report() == ""

    def test_lone_surrogate(self):
        with pytest.raises(CorpusError, match=r"field 'text' is '.*\\ud800' \(str\)"):
            cut("a \ud800")


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


TEXTS = st.text(
    st.one_of(
        st.sampled_from("aB.! \n\r\t-😀　。\u200b\ufeff\x00\x1c\x85\u2028"), st.characters(exclude_categories=["Cs"])
    ),
    max_size=60,
)


@given(TEXTS, st.sampled_from(["punctuation", "lines", "none"]), st.data())
def test_any_text_is_cut_and_every_entity_kept_or_counted(text, sentence_splitter, data):
    """Words are the text without its white space; what is kept spells what was annotated; nothing disappears."""
    borders = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda pair: pair[0] < pair[1])
    spans = data.draw(st.lists(st.lists(borders, min_size=1, max_size=2), max_size=5)) if text else []
    annotations = [annotation(*fragments, kind=f"X{number}") for number, fragments in enumerate(spans)]
    records, check = cut(text, *annotations, sentence_splitter=sentence_splitter)
    words = "".join(token for record in records for token in record["tokens"])
    assert bare(words) == bare(text)
    kept = [(record, entity) for record in records for entity in record["entities"]]
    for record, entity in kept:
        fragments = spans[int(entity["type"][1:])]
        start, end = min(start for start, _ in fragments), max(end for _, end in fragments)
        found = "".join(record["tokens"][entity["start"] : entity["end"]])
        assert bare(found) == bare(text[start:end])
    assert check.entities_kept == len(kept)
    assert check.entities_kept + check.entities_dropped == len(spans)


def bare(text):
    return "".join(text.translate(INVISIBLE_SPACES).split())
