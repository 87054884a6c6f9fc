"""Texts annotated by characters: what is checked, how they are cut and aligned, and what becomes of their entities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, align_entities
from modeling_triaffine.data.schema import Text
from modeling_triaffine.data.texts import sentences_of, split_words
from modeling_triaffine.model.text_triaffine import sentences_by, word_splitter
from tests.helpers.corpora import bare, cut, entity, read, spelled, write_json
from tests.helpers.tiny import tiny_processor


def entity_of(text, *fragments, quote=None, **options):
    """The entity of these fragments, and the checker."""
    check = RecordChecker("a.txt", **options)
    with check.record():
        return check.entity(text, fragments, "X", quote, "line 1", "T1"), check


class TestChecks:
    @pytest.mark.parametrize(
        ("text", "span", "unit"),
        [
            ("to Orsk", (3, 7), None),
            ("😀 to Orsk", (6, 10), "utf16"),
            ("😀 é\r\nOrsk", (9, 13), "bytes"),
            ("\ufeffto Orsk", (4, 8), None),
        ],
    )
    def test_offsets_count_what_is_named(self, text, span, unit):
        entity, check = entity_of(text, span, quote="Orsk", offsets=unit)
        assert text[entity["start"] : entity["end"]] == "Orsk"
        assert not check.report()

    @pytest.mark.parametrize(
        ("span", "options", "problem"),
        [
            ((6, 10), {}, "runs from 6 to 10, the text has 9 characters"),
            ((-1, 3), {}, "runs from -1 to 3"),
            ((4, 3), {}, "runs from 4 to 3"),
            ((1, 3), {"offsets": "utf16"}, "runs from 1 to 3"),
            ((5, 9), {"quote": "Omsk"}, r"quotes 'Omsk', but from 5 to 9 the text is '. to \[Orsk\]'"),
        ],
    )
    def test_what_is_wrong_is_shown_with_the_options(self, span, options, problem):
        with pytest.raises(CorpusError, match=f"^a.txt, line 1: field 'T1.*{problem}.*--max_bad_records") as error:
            entity_of("😀 to Orsk", span, **options)
        assert "--offsets, offsets=" in str(error.value)
        dropped, check = entity_of("😀 to Orsk", span, **options, max_bad_records=1)
        assert (dropped, check.counts) == (None, {"bad entities dropped": 1})

    @pytest.mark.parametrize("quote", ["a b", "a   b", "a\nb", "a\\nb", " a b ", "\ufeffa b"])
    def test_white_space_of_quotes_makes_no_difference(self, quote):
        assert entity_of("a\nb", (0, 3), quote=quote)[0]["end"] == 3

    @pytest.mark.parametrize(
        ("fragments", "why"),
        [
            ([(0, 1), (4, 5)], "discontinuous entities dropped"),
            ([(1, 2)], "entities of white space alone dropped"),
            ([(2, 2)], "entities of white space alone dropped"),
            ([(0, 1), (2, 3)], None),
            ([(2, 3), (9, 9), (0, 1)], None),
            ([(0, 4)], None),
        ],
    )
    def test_fragments(self, fragments, why):
        """White space alone separates what is one; at boundaries, it is no part of an entity."""
        entity, check = entity_of("a\u200bb c", *fragments, quote="a b" if why is None else None)
        assert entity == (None if why else {"start": 0, "end": 3, "type": "X"})
        assert check.counts == ({why: 1} if why else {})


class TestCut:
    def test_a_border_inside_a_word_is_shown_with_the_text_around(self):
        text = "It is the very " + "long " * 1000 + "story of wild-type CD28-mediated growth."
        _, check = cut(text, (len(text) - 21, len(text) - 19))
        assert check.report() == (
            "a.txt: sentences: 1; entities kept: 0 of 1; entities with a boundary inside a word dropped: 1 "
            "(a: X … story of wild-type [CD]28-mediated growth.)."
        )
        _, check = cut("abcd", *[(0, end) for end in (1, 2, 3, 1)])
        assert "boundary inside a word dropped: 4 (a: X [a]bcd | a: X [ab]cd | a: X [abc]d | …)" in check.report()

    def test_over_the_end_of_a_sentence(self):
        text = "He ran. They sat."
        records, check = cut(text, (3, 12))
        assert [spelled(record) for record in records] == [[], []]
        assert "entities across sentences dropped: 1 (a: X He [ran. They] sat.)" in check.report()
        (record,), check = cut(text, (3, 12), sentence_splitter="none")
        assert spelled(record) == [("ran . They", "X")]

    def test_by_the_splitters_given(self):
        records, _ = cut("one-two\nthree. Four", word_splitter=word_splitter("whitespace"), sentence_splitter="lines")
        assert [record["tokens"] for record in records] == [["one-two"], ["three.", "Four"]]
        assert [(record["id"], record["sent_id"]) for record in records] == [("a:0", 0), ("a:1", 1)]
        assert "texts without words ignored: 1" in cut("\u200b\ufeff")[1].report()

    def test_long_sentences_stay_whole(self):
        """The model reads them in windows."""
        (record,), check = cut("a. " * 300, (255 * 3, 260 * 3 - 1), sentence_splitter="none")
        assert (len(record["tokens"]), len(record["entities"]), check.report()) == (600, 1, "")

    def test_in_the_words_and_sentences_of_the_corpus(self):
        """Words without parts of speech in all of a sentence have none there."""
        text = Text(doc_id="d", text="It's far. Orsk", entities=[{"start": 10, "end": 14, "type": "City"}])
        text |= {"words": [(0, 2), (2, 4), (5, 8), (8, 9), (10, 14)], "pos": ["A", "B", "C", "", "D"]}
        check = RecordChecker("a")
        first, second = sentences_of(text, check)
        assert (first["tokens"], first["pos"]) == (["It", "'s", "far", "."], [])
        assert (second["tokens"], second["pos"], spelled(second)) == (["Orsk"], ["D"], [("Orsk", "City")])
        (whole,) = sentences_of({**text, "doc_id": "e", "sentences": [(0, 14)]}, check, word_splitter("whitespace"))
        assert (whole["tokens"], whole["pos"]) == (["It's", "far.", "Orsk"], [])


LAYERS = {
    "pos": ({"words": [[0, 4], [5, 10]], "pos": ["A"]}, "field 'pos' has 1 values for 2 words"),
    "ids": ({"sentences": [[0, 10]], "sentence_ids": ["a", "b"]}, "field 'sentence_ids' has 2 values for 1 sentences"),
    "order": ({"words": [[5, 10], [0, 4]]}, "field 'words' is not in order"),
    "outside": ({"sentences": [[0, 11]]}, "field 'sentences' is not in order or outside"),
}


@pytest.mark.parametrize(("layers", "problem"), LAYERS.values(), ids=LAYERS)
def test_words_and_sentences_in_json_fit_the_text(tmp_path, layers, problem):
    with pytest.raises(CorpusError, match=f"a.jsonl, line 1: .*{problem}"):
        read(write_json(tmp_path / "a.jsonl", {"text": "Orsk slept", "entities": [], **layers}))


def test_fields_of_their_names_in_other_forms_are_ignored(tmp_path):
    fields = {"words": ["Orsk", "slept"], "pos": ["A", "B"], "sentences": 1, "left_tokens": ["It"]}
    (row,), check = read(write_json(tmp_path / "a.jsonl", {"text": "Orsk slept", "entities": [], **fields}))
    assert (row["tokens"], row["pos"], row["left_tokens"]) == (["Orsk", "slept"], [], None)
    assert check.counts == {f"field '{name}' ignored": 1 for name in fields}


ODD = st.sampled_from("aB.! \n\r\t-😀　。\u200b\ufeff\x00\x1c\x85\u2028")
TEXTS = st.text(ODD | st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXTS, st.sampled_from(["punctuation", "lines", "none"]), st.data())
def test_any_text_is_cut_and_every_entity_kept_or_counted(text, sentence_splitter, data):
    """Words are the text without its white space; what is kept spells what was annotated; nothing disappears."""
    borders = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda pair: pair[0] < pair[1])
    spans = data.draw(st.lists(st.lists(borders, min_size=1, max_size=2), max_size=5)) if text else []
    check = RecordChecker("a.txt")
    found = [check.entity(text, fragments, f"X{number}") for number, fragments in enumerate(spans)]
    made = Text(doc_id="a", text=text, entities=list(filter(None, found)))
    records = list(sentences_of(made, check, sentence_splitter=sentence_splitter))
    words = "".join(token for record in records for token in record["tokens"])
    assert bare(words) == bare(text)
    kept = [(record, entity) for record in records for entity in record["entities"]]
    for record, aligned in kept:
        fragments = spans[int(aligned["type"][1:])]
        start, end = min(start for start, _ in fragments), max(end for _, end in fragments)
        assert bare("".join(record["tokens"][aligned["start"] : aligned["end"]])) == bare(text[start:end])
    assert check.entities_kept == len(kept)
    assert check.entities_kept + check.entities_dropped == len(spans)


TEXT = "a (CD28)-like one"
WORDS = [(0, 1), (3, 7), (9, 13), (14, 17)]  # brackets and hyphen belong to no word


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (3, 7, (1, 2)),
        (2, 8, (1, 2)),  # what no word covers is no obstacle
        (1, 9, (1, 2)),
        (0, 17, (0, 4)),
        (3, 13, (1, 3)),
        (4, 7, None),  # begins inside a word
        (3, 6, None),  # ends inside one
        (10, 12, None),  # lies inside one
        (7, 9, None),  # covers none
        (1, 2, None),  # white space
    ],
)
def test_borders(start, end, expected):
    aligned, lost = align_entities(TEXT, [entity(start, end)], WORDS)
    assert aligned == ([entity(*expected)] if expected else [])
    assert lost == ([] if expected else [entity(start, end)])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 2), (3, 1), (0, 99)])
def test_outside_the_text(start, end):
    with pytest.raises(ValueError, match="17 characters"):
        align_entities(TEXT, [entity(start, end)], WORDS)


@pytest.mark.parametrize(
    "words", [[(0, 0)], [(2, 3), (0, 1)], [(0, 2), (1, 3)], [(0, 18)], [(-1, 2)], ["a"], [(None, 2)]]
)
def test_words_of_a_splitter_are_checked(words):
    with pytest.raises(ValueError, match="The word splitter returned"):
        split_words(TEXT, lambda text: words)
    with pytest.raises(ValueError, match="The word splitter returned no word"):
        split_words(TEXT, lambda text: [])
    with pytest.raises(ValueError, match="sentence 1"):
        list(sentences_by(lambda text: [[(0, 1)], words], "a b c"))


def test_long_sentences_of_a_splitter_are_windowed(encoder):
    """Which gets a text that every library takes, without lone surrogates."""
    processor, asked = tiny_processor(encoder, max_sentence_words=16), []
    processor.text_splitter = lambda text: asked.append(text) or [[(0, 4)], [(n, n + 1) for n in range(5, 22)]]
    assert [len(part.words) for part in processor.read_text("x" * 21 + "\ud800")] == [1, 4, 4, 4, 4, 4, 2]
    assert asked == ["x" * 21 + "\ufffd"]
