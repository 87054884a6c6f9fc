"""Data sets of other forms, such as those on the Hub; context from neighbours in a document; statistics, by hand."""

import json
from itertools import chain

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Split, Value
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine import load_nested_ner
from modeling_triaffine.data import FEATURES, CorpusError, adapt_dataset, add_context, corpus_statistics
from modeling_triaffine.data.records import quantile, repeated_sentences
from tests.helpers.corpora import BIGBIO_RECORD, spelled, triples, write_files, write_json

NESTED = [("the mayor of Orsk", "Person"), ("Orsk", "City")]
NAMES = ClassLabel(names=["O", "B-Person", "I-Person", "B-City"])
OUTER, INNER = [1, 2, 2, 2], [0, 0, 0, 3]
WORDS = {"n": 4, "words": ["the", "mayor", "of", "Orsk"], "outer": OUTER, "inner": INNER, "tag": ["X"] * 4}
SLEPT = {"n": 4, "words": ["slept"], "outer": [0], "inner": [0], "tag": ["V"]}
TAGS = {name: List(NAMES) for name in ("outer", "inner")}
FIELDS = Features({"n": Value("int32"), "words": List(Value("string")), "tag": List(Value("string")), **TAGS})
TAGGED = Dataset.from_list([WORDS, SLEPT], features=FIELDS)
LEVELS = {"tokens": "words", "entities": ["outer", "inner"]}


def adapted(columns, *rows, features=None, **options):
    return adapt_dataset(Dataset.from_list([*rows], features=features and Features(features)), columns, **options)


def test_columns_of_class_labels():
    splits = adapt_dataset(DatasetDict(train=TAGGED, test=TAGGED), {**LEVELS, "pos": "tag", "doc_id": "n"})
    assert list(splits) == ["train", "test"]
    assert splits["train"].features == FEATURES
    assert [spelled(row) for row in splits["train"]] == [NESTED, []]
    assert [(row["id"], row["doc_id"], row["sent_id"], row["pos"]) for row in splits["train"]] == [
        ("train:0", "4", 0, ["X"] * 4),
        ("train:1", "4", 1, ["V"]),
    ]
    assert splits["test"][0]["id"] == "test:0"
    assert adapt_dataset(TAGGED, LEVELS)["doc_id"][:] == ["dataset:0", "dataset:1"]  # a row is a document


@pytest.mark.parametrize("kind", [NAMES, Value("int64"), Value("string")])
def test_lists_of_levels(kind):
    tags = [[NAMES.int2str(tag) if kind == Value("string") else tag for tag in level] for level in (OUTER, INNER)]
    columns = {"tokens": "words", "entities": "tags"} | ({"names": NAMES.names} if kind == Value("int64") else {})
    features = {"words": List(Value("string")), "tags": List(List(kind))}
    assert spelled(adapted(columns, {"words": WORDS["words"], "tags": tags}, features=features)[0]) == NESTED


OF_AB = {"tokens": "w", "entities": "e"}
LISTS = {"start": List(Value("int32")), "end": List(Value("int32")), "label": List(ClassLabel(names=["A", "B"]))}
A_AND_B = [(0, 2, "A"), (1, 2, "B")]
OTHER_NAMES = {"start": "first", "end": "stop", "inclusive_end": True}
FORMS = {
    "numbers of tags": ({"names": ["O", "B-LOC", "I-LOC"]}, [0, 1], [(1, 2, "LOC")]),
    "numbers of types": ({"names": ["O", "LOC", "PER"]}, [0, 1], [(1, 2, "LOC")]),
    # The rows of two data sets joined have null in the other's field.
    "spans": ({}, [{"start": 0, "end": 2, "type": "A"}, {"start": 1, "end": 2, "label": "B"}], A_AND_B),
    "lists of fields": ({}, {"start": [0, 1], "end": [2, 2], "label": [0, 1]}, A_AND_B),
    "other names": (OTHER_NAMES, [{"first": 0, "stop": 1, "type": "A"}], [(0, 2, "A")]),
    "no entity": ({}, [], []),
}


@pytest.mark.parametrize(("columns", "entities", "expected"), FORMS.values(), ids=FORMS)
def test_forms_of_entities(columns, entities, expected):
    features = {"w": List(Value("string")), "e": LISTS} if isinstance(entities, dict) else None
    rows = adapted(OF_AB | columns, {"w": ["a", "b"], "e": entities}, features=features)
    assert triples(rows[0]) == expected


def test_what_is_not_read_is_counted():
    rows = TAGGED.rename_columns({"outer": "ner_tags", "inner": "nested_ner_tags"})
    flat = adapt_dataset(rows, {"tokens": "words", "entities": "ner_tags"})
    assert "field 'nested_ner_tags' ignored: 2" in flat.info.description  # and so all columns that are not named
    both = adapt_dataset(rows, {"tokens": "words", "entities": ["ner_tags", "nested_ner_tags"]})
    assert spelled(both[0]) == NESTED
    assert "nested_ner_tags" not in both.info.description


OF_TEXTS = {"text": "body", "entities": "marks", "id": "key"}


class TestTexts:
    def test_with_spans(self, caplog):
        marks = [{"start": 4, "end": 8, "label": "City"}, {"start": 4, "end": 6, "label": "X"}]
        rows = adapted(OF_TEXTS, {"body": "The Orsk. He ran.", "marks": marks, "key": 7}, sentence_splitter="none")
        assert [(row["id"], spelled(row)) for row in rows] == [("7:0", [("Orsk", "City")])]
        report = (
            "dataset: sentences: 1; entities kept: 1 of 2; entities with a boundary inside a word dropped: 1 "
            "(row 0: X The [Or]sk. He ran.)."
        )
        assert (rows.info.description, caplog.messages) == (report, [report])

    def test_in_other_columns_and_units(self):
        row = {"body": "😀 to Orsk", "ann": {"spans": [{"first": 6, "last": 9, "type": "A"}], "rel": [1, 2]}}
        columns = {"text": "body", "entities": "ann.spans", "start": "first", "end": "last", "inclusive_end": True}
        assert spelled(adapted(columns, row, offsets="utf16")[0]) == [("Orsk", "A")]
        with pytest.raises(CorpusError, match="--offsets"):
            adapted(columns, row)
        with pytest.raises(ValueError, match="`offsets` is 'utf8'"):
            adapted(columns, row, offsets="utf8")

    def test_of_bigbio(self):
        rows = Dataset.from_list([BIGBIO_RECORD, {**BIGBIO_RECORD, "id": "2", "document_id": "b"}], split=Split.TRAIN)
        found = adapt_dataset(DatasetDict({"train": rows}), "bigbio_kb")["train"]
        assert [(row["id"], len(row["entities"])) for row in found] == [("a:0", 2), ("b:0", 2)]
        with pytest.raises(CorpusError, match=r"'passages'.*'tokens'"):
            adapted("bigbio_kb", {"tokens": ["a"]})


@pytest.mark.parametrize("form", ["numpy", "large"])
def test_any_form_of_a_data_set_is_read(form):
    large = TAGGED.cast(Features({**TAGGED.features, "outer": LargeList(NAMES)}))
    given = large if form == "large" else TAGGED.with_format(form)
    assert adapt_dataset(given, LEVELS)[:] == adapt_dataset(TAGGED, LEVELS)[:]
    none = adapt_dataset(TAGGED.select([]), LEVELS)
    assert (len(none), none.features) == (0, FEATURES)


def test_null_is_no_name():
    columns = {"tokens": "w", "entities": "e", "id": "n", "doc_id": "n"}
    rows = adapted(columns, {"w": ["a"], "e": ["O"], "n": None}, {"w": ["b"], "e": ["O"], "n": "x"})
    assert [(row["id"], row["doc_id"]) for row in rows] == [("dataset:0", "dataset:0"), ("x", "x")]


@pytest.mark.parametrize(
    ("words", "entities", "problem"),
    [
        (["a"], ["B-A", "O"], "field 'e' has 2 tags for 1 tokens"),
        (["a"], ["Q-A"], "field 'e' has 'Q-A'"),
        (["a", "b"], ["O", None], "field 'e' has null"),
        (["a"], [3], "field 'e' has the number 3"),
        (["a"], None, "field 'e' is null"),
        (7, [], "field 'w' is 7"),
        ([], [], "field 'tokens' is [] (list)"),
        (["a"], ["B-None"], "field 'entities[0].type' is 'None'"),
        (["a"], [{"first": 0, "type": "A"}], "field 'e[0].start' is missing"),
        (["a"], {"start": [0], "end": []}, "field 'e': zip() argument 2 is shorter"),
    ],
)
def test_errors_name_row_and_column(words, entities, problem):
    with pytest.raises(CorpusError) as caught:
        adapted(OF_AB, {"w": words, "e": entities})
    assert str(caught.value).startswith(f"dataset, row 0: {problem}")


def test_rows_without_annotation_are_errors():
    rows = {"w": ["a"], "e": ["B-A"]}, {"w": ["a"], "e": []}
    assert len(adapted(OF_AB, *rows, max_bad_records=1)) == 1
    with pytest.raises(CorpusError, match="dataset, row 1: field 'e' has 0 tags for 1 tokens"):
        adapted(OF_AB, *rows)
    hidden = TAGGED.select([0]).map(lambda row: {"outer": [-1] * 4})
    with pytest.raises(CorpusError, match="test, row 0: field 'outer' has the number -1"):
        adapt_dataset(DatasetDict(test=hidden), {"tokens": "words", "entities": "outer"})
    assert len(adapt_dataset(hidden, {"tokens": "words", "entities": "inner"})) == 1  # other columns are not read


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"tokens": "words"}, "'ner_tags' is missing"),
        ({"tokens": "words", "text": "x", "entities": "outer"}, r"\['entities', 'text', 'tokens'\]"),
        ({"tokens": "words", "entities": "outer", "lemma": "x"}, "'lemma'"),
        ({"text": "tag", "entities": "outer", "doc_id": "n"}, "'doc_id', 'entities', 'text'"),
        ({"tokens": "words", "entities": ["outer", "nested"]}, "'nested' is missing; the fields are 'n'"),
        ({"text": "tag", "entities": ["outer", "inner"]}, r"entities is \['outer', 'inner'\]"),
        ("bigbio", "'bigbio_kb'"),
    ],
)
def test_wrong_columns(columns, problem):
    with pytest.raises(ValueError, match=problem):
        adapt_dataset(TAGGED, columns)
    with pytest.raises(TypeError, match=r"adapt_dataset .*type DataFrame\. .*from_list"):
        adapt_dataset(TAGGED.to_pandas(), LEVELS)


# ---- Context ----


def sentence(doc_id, sent_id, tokens, left=None, right=None):
    values = (f"{doc_id}:{sent_id}", doc_id, sent_id, tokens.split(), [], [], left, right)
    return dict(zip(FEATURES, values, strict=True))


def corpus(*sentences):
    return Dataset.from_list(list(sentences), features=FEATURES)


MIXED = corpus(  # two documents, interleaved and out of order
    sentence("x", 1, "c d e"),
    sentence("y", 0, "m"),
    sentence("x", 0, "a b"),
    sentence("y", 1, "n o"),
    sentence("x", 2, "f"),
)


def contexts(dataset):
    return [(" ".join(row["left_tokens"]), " ".join(row["right_tokens"])) for row in dataset]


@pytest.mark.parametrize(
    ("context", "max_tokens", "expected"),
    [
        ("none", 9, [("", "")] * 5),
        ("previous_sentence", 9, [("a b", ""), ("", ""), ("", ""), ("m", ""), ("c d e", "")]),
        ("previous_sentence", 2, [("a b", ""), ("", ""), ("", ""), ("m", ""), ("d e", "")]),
        ("document", 9, [("a b", "f"), ("", "n o"), ("", "c d e f"), ("m", ""), ("a b c d e", "")]),
        ("document", 2, [("a b", "f"), ("", "n o"), ("", "c d"), ("m", ""), ("d e", "")]),
        ("document", 0, [("", "")] * 5),
    ],
)
def test_neighbours_of_the_document(context, max_tokens, expected):
    filled = add_context(MIXED, context, max_tokens)
    assert contexts(filled) == expected
    assert filled.features == FEATURES
    kept = ["id", "tokens", "entities"]
    assert filled.select_columns(kept)[:] == MIXED.select_columns(kept)[:]


@pytest.mark.parametrize("context", ["none", "previous_sentence", "document"])
def test_own_context_stays(context):
    own = corpus(sentence("x", 0, "a"), sentence("x", 1, "b", left=[], right=["z"]))
    assert contexts(add_context(own, context, 9))[1] == ("", "z")


def test_splits_have_no_common_neighbours():
    splits = DatasetDict(train=corpus(sentence("x", 0, "a")), validation=corpus(sentence("x", 1, "b")))
    filled = add_context(splits, "document", 9)
    assert contexts(filled["train"]) + contexts(filled["validation"]) == [("", ""), ("", "")]


def test_any_format_and_the_columns_alone_are_read():
    rows = MIXED.select_columns(["tokens", "doc_id", "sent_id"])
    around = contexts(add_context(MIXED, "document", 2))
    assert contexts(add_context(rows.with_format("numpy"), "document", 2)) == around
    assert contexts(add_context(rows.select_columns("tokens"), "none", 9)) == [("", "")] * 5
    numbers = Dataset.from_dict({"doc_id": [1, None], "sent_id": [0, 0], "tokens": [["a"], ["b"]]})  # of documents
    assert contexts(add_context(numbers, "document", 2)) == [("", ""), ("", "")]


def test_sentences_without_a_document_are_no_neighbours_and_those_without_numbers_keep_their_order():
    rows = MIXED.map(lambda row: {"doc_id": None if row["doc_id"] == "x" else "y"}, features=FEATURES)
    assert contexts(add_context(rows, "document", 9)) == [("", ""), ("", "n o"), ("", ""), ("m", ""), ("", "")]
    rows = MIXED.map(lambda row: {"sent_id": None}, features=FEATURES)
    assert contexts(add_context(rows, "document", 9))[2] == ("c d e", "f")


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"needs the columns \['doc_id', 'sent_id'\]"):
        add_context(MIXED.select_columns("tokens"), "document", 9)
    with pytest.raises(ValueError, match="`context` is 'nonesuch'"):
        add_context(MIXED, "nonesuch", 9)
    with pytest.raises(TypeError, match="type IterableDataset"):
        add_context(MIXED.to_iterable_dataset(), "document", 9)


# ---- Statistics ----


def record(tokens, entities, pos=()):
    return {
        "tokens": tokens.split(),
        "pos": list(pos),
        "entities": [{"start": start, "end": end, "type": kind} for start, end, kind in entities],
    }


def test_counts():
    nested = [(0, 4, "PER"), (1, 3, "ORG"), (1, 3, "GPE"), (2, 3, "PER"), (4, 5, "PER")]
    of_one_span = [(0, 1, "PER"), (0, 1, "ORG")]  # not nested
    records = [record("a b c d e", nested, pos="NNNNN"), record("a b", of_one_span), record("a", [])]
    assert corpus_statistics(records, max_candidates=3) == {
        "sentences": 3,
        "tokens": 8,
        "entities": 7,
        "nested_entities": 4,
        "inner_entities": 3,
        "entities_by_type": {"GPE": 1, "ORG": 2, "PER": 4},
        "sentences_with_pos": 1,
        "most_entities": 5,
        "longest_sentence": 5,
        "nesting_depth": 3,
        "sentence_lengths": {1: 1, 2: 1, 5: 1},
        "entity_lengths": {1: 4, 2: 2, 4: 1},
        "entities_per_sentence": {0: 1, 2: 1, 5: 1},
        "entity_depths": {1: 4, 2: 2, 3: 1},
        "spans_above_max_candidates": 1,
        "needed_candidates": 4,
    }


def test_of_nothing_and_of_several_splits():
    statistics = corpus_statistics([])
    assert (statistics["sentences"], statistics["entities"], statistics["most_entities"]) == (0, 0, 0)
    splits = {"train": [record("a b", [(0, 2, "X")])], "test": [{"tokens": ["c"], "entities": []}]}
    assert corpus_statistics(splits) == corpus_statistics(chain.from_iterable(splits.values()))


def test_equal_sentences_are_counted():
    orsk, other, alone = record("Orsk slept", [(0, 1, "City")]), record("Orsk slept", []), record("He ran", [])
    assert repeated_sentences({"train": [orsk, other, orsk, alone], "test": [alone]}) == (
        "equal sentences: 2 in train, 1 of them with other entities; of test in train: 1 of 1"
    )
    assert repeated_sentences({"validation": [alone, orsk], "train": [orsk]}) == "of validation in train: 1 of 2"
    assert repeated_sentences({"train": [orsk, alone]}) == ""


@given(st.lists(st.integers(0, 20), min_size=1), st.floats(0.01, 1))
def test_quantile(values, share):
    distribution = {value: values.count(value) for value in values}
    result = quantile(distribution, share)
    assert sum(value <= result for value in values) / len(values) >= share
    assert sum(value < result for value in values) / len(values) < share


@pytest.mark.parametrize(
    ("given", "split"),
    [("dev.jsonl", "validation"), ("news-test.jsonl", "test"), ("news.jsonl", "news.jsonl"), ("dev", "validation")],
)
def test_what_is_given_alone_is_called_by_the_split_in_its_name(command, tmp_path, given, split):
    names = ("dev", "news-test", "train", "news", "dev/a", "dev/b", "news/a")
    write_files(tmp_path, {f"{name}.jsonl": json.dumps(record("a", [(0, 1, "PER")])) for name in names})
    assert [*json.loads(command("statistics", tmp_path / given, "--json").out)] == [split]
    assert [*load_nested_ner(tmp_path / given)] == ["train"]  # as training reads it


def test_the_table_of_the_command_and_its_warning(command, tmp_path):
    for name, count in (("train", 4), ("dev", 1)):
        entities = [(start, start + 1, "PER") for start in range(count)]
        records = [record(f"{name} {number}", []) for number in range(40)]
        records += [*(record(f"{number} b c", []) for number in range(3)), record("a b c d", entities)]
        write_json(tmp_path / f"{name}.jsonl", *records)
    result = command("statistics", tmp_path)
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["train", "validation", "total"]
    for name, *numbers in (
        ("entities", "4", "1", "5"),
        ("sentence lengths, median", "2", "2", "2"),
        ("sentence lengths, 95 %", "3", "3", "3"),
        ("sentence lengths, most", "4", "4", "4"),
        ("entities per sentence, median", "0", "0", "0"),
        ("entities per sentence, most", "4", "1", "4"),
        ("entities by type: PER", "4", "1", "5"),
        ("needed candidates", "4", "1", "4"),
    ):
        assert [*name.split(), *numbers] in lines
    assert "of validation in train: 4 of 44" in result.err
    assert result.code == 0
