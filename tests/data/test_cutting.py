"""Texts annotated by characters: how they are cut and what becomes of their entities, whatever the text is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modeling_triaffine.data.cutting import text_of

from modeling_triaffine.data import CorpusError
from modeling_triaffine.data.documents import Document
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import annotation, bare, cut, read, spelled, write_json


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


def annotated(text, *entities):
    """A record of texts with spans; entities are (words, type), each where it first occurs."""
    spans = [[text.index(quote), text.index(quote) + len(quote), kind] for quote, kind in entities]
    return {"text": text, "label": spans}


@pytest.mark.parametrize(
    ("text", "entities", "splitter", "sentences"),
    [
        ("北京大学的王小明去了上海。他走了。", ["北京大学", "北京", "王小明", "上海"], None, 2),
        ("東京大学の山田太郎は京都に行った。そして", ["東京大学", "東京", "山田太郎", "京都"], None, 2),
        ("김민수는 서울대학교에서 일한다. 그는 산다.", ["김민수", "서울대학교", "서울"], "syllables", 2),
    ],
    ids=["Chinese", "Japanese", "Korean"],
)
def test_words_can_carry_nested_entities(tmp_path, text, entities, splitter, sentences):
    path = write_json(tmp_path / "a.jsonl", annotated(text, *((quote, "X") for quote in entities)))
    options = {} if splitter is None else {"word_splitter": word_splitter(splitter)}
    records, check = read(path, **options)
    found = ["".join(one["tokens"][e["start"] : e["end"]]) for one in records for e in one["entities"]]
    assert (sorted(found), len(records), check.report()) == (sorted(entities), sentences, "")


def test_korean_particles_are_part_of_words_by_default_and_what_is_lost_is_counted(tmp_path):
    records, check = read(
        write_json(tmp_path / "a.jsonl", annotated("김민수는 서울 산다", ("김민수", "X"), ("서울", "Y")))
    )
    assert [entity["type"] for entity in records[0]["entities"]] == ["Y"]
    assert check.counts == {"entities with a boundary inside a word dropped": 1}
