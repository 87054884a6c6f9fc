"""Data sets of other forms, such as those on the Hub."""

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, LargeList, List, Value

from modeling_triaffine.data import FEATURES, CorpusError, adapt_dataset
from tests.helpers.corpora import BIGBIO_RECORD, spelled, triples

NESTED = [("the mayor of Orsk", "Person"), ("Orsk", "City")]
NAMES = ClassLabel(names=["O", "B-Person", "I-Person", "B-City"])
TAGGED = Dataset.from_list(
    [
        {
            "n": 4,
            "words": ["the", "mayor", "of", "Orsk"],
            "outer": [1, 2, 2, 2],
            "inner": [0, 0, 0, 3],
            "tag": ["X"] * 4,
        },
        {"n": 4, "words": ["slept"], "outer": [0], "inner": [0], "tag": ["V"]},
    ],
    features=Features(
        {
            "n": Value("int32"),
            "words": List(Value("string")),
            "outer": List(NAMES),
            "inner": List(NAMES),
            "tag": List(Value("string")),
        }
    ),
)


class TestAdapt:
    def test_columns_of_class_labels(self):
        columns = {"tokens": "words", "entities": ["outer", "inner"], "pos": "tag", "doc_id": "n"}
        adapted = adapt_dataset(DatasetDict(train=TAGGED, test=TAGGED), columns)
        assert list(adapted) == ["train", "test"]
        assert adapted["train"].features == FEATURES
        rows = list(adapted["train"])
        assert [spelled(row) for row in rows] == [NESTED, []]
        assert [(row["id"], row["doc_id"], row["sent_id"], row["pos"]) for row in rows] == [
            ("train:0", "4", 0, ["X"] * 4),
            ("train:1", "4", 1, ["V"]),
        ]
        assert adapted["test"][0]["id"] == "test:0"

    def test_without_documents_every_row_is_one(self):
        rows = adapt_dataset(TAGGED, {"tokens": "words", "entities": "outer"})
        assert [(row["doc_id"], row["sent_id"], spelled(row)) for row in rows] == [
            ("dataset:0", 0, NESTED[:1]),
            ("dataset:1", 0, []),
        ]

    @pytest.mark.parametrize("tags", [[[1, 2, 2, 2], [0, 0, 0, 3]], [[1], [2], [2], [2, 3]]])
    @pytest.mark.parametrize("kind", [NAMES, Value("int64"), Value("string")])
    def test_lists_of_levels_and_of_tokens(self, tags, kind):
        if kind == Value("string"):
            tags = [[NAMES.int2str(tag) for tag in one] for one in tags]
        features = Features({"words": List(Value("string")), "tags": List(List(kind))})
        rows = Dataset.from_list([{"words": TAGGED[0]["words"], "tags": tags}], features=features)
        columns = {"tokens": "words", "entities": "tags"} | ({"names": NAMES.names} if kind == Value("int64") else {})
        assert spelled(adapt_dataset(rows, columns)[0]) == NESTED

    def test_an_inner_level_that_is_not_named_is_counted(self):
        rows = TAGGED.rename_columns({"outer": "ner_tags", "inner": "nested_ner_tags"})
        adapted = adapt_dataset(rows, {"tokens": "words", "entities": "ner_tags"})
        assert "field 'nested_ner_tags' ignored: 2" in adapted.info.description
        adapted = adapt_dataset(rows, {"tokens": "words", "entities": ["ner_tags", "nested_ner_tags"]})
        assert (spelled(adapted[0]), adapted.info.description) == (NESTED, "")

    @pytest.mark.parametrize("names", [["O", "B-LOC", "I-LOC"], ["O", "LOC", "PER"]])
    def test_numbers_of_tags_with_their_names(self, names):
        rows = Dataset.from_list([{"words": ["a", "b", "c"], "tags": [0, 1, 0]}])
        adapted = adapt_dataset(rows, {"tokens": "words", "entities": "tags", "names": names})
        assert triples(adapted[0]) == [(1, 2, "LOC")]

    @pytest.mark.parametrize("names", [["type"], ["label"], ["type", "label"], ["label", "type"]])
    def test_spans_of_tokens(self, names):
        """The rows of two data sets joined have null in the other's field."""
        spans = [{"start": 0, "end": 2, names[0]: "A"}, {"start": 1, "end": 2, names[-1]: "B"}]
        rows = Dataset.from_list([{"words": ["a", "b"], "spans": spans}])
        assert triples(adapt_dataset(rows, {"tokens": "words", "entities": "spans"})[0]) == [(0, 2, "A"), (1, 2, "B")]

    def test_spans_as_lists_of_their_fields(self):
        label = ClassLabel(names=["A", "B"])
        features = {"words": List(Value("string")), "spans": {name: List(Value("int32")) for name in ("start", "end")}}
        features["spans"]["label"] = List(label)
        rows = [{"words": ["a", "b"], "spans": {"start": [0, 1], "end": [2, 2], "label": [0, 1]}}]
        adapted = adapt_dataset(
            Dataset.from_list(rows, features=Features(features)), {"tokens": "words", "entities": "spans"}
        )
        assert triples(adapted[0]) == [(0, 2, "A"), (1, 2, "B")]

    def test_texts_with_spans(self, caplog):
        spans = [{"start": 4, "end": 8, "label": "City"}, {"start": 4, "end": 6, "label": "X"}]
        rows = Dataset.from_list([{"sentence": "The Orsk. He ran.", "spans": spans, "key": 7}])
        adapted = adapt_dataset(rows, {"text": "sentence", "entities": "spans", "id": "key"}, sentence_splitter="none")
        assert [(row["id"], spelled(row)) for row in adapted] == [("7:0", [("Orsk", "City")])]
        report = (
            "dataset: sentences: 1; entities kept: 1 of 2; entities with a boundary inside a word dropped: 1 "
            "(row 0: X The [Or]sk. He ran.), of which --word_splitter characters would keep 1; "
            "labels that lose more than 5 %: X 1 of 1 (all)."
        )
        assert (adapted.info.description, caplog.messages) == (report, [report])

    @pytest.mark.parametrize(
        ("row", "problem"),
        [
            ({"t": ["a"], "e": ["B-A", "O"]}, "dataset, row 0: field 'e' has 2 tags for 1 tokens"),
            ({"t": ["a"], "e": ["Q-A"]}, "dataset, row 0: field 'e' has 'Q-A'"),
            ({"t": ["a", "b"], "e": ["O", None]}, "dataset, row 0: field 'e' has null"),
            ({"t": ["a"], "e": [3]}, "dataset, row 0: field 'e' has numbers, up to 3"),
            ({"t": ["a"], "e": None}, "dataset, row 0: field 'e' is null"),
            ({"t": 7, "e": []}, "dataset, row 0: field 't' is 7"),
            ({"t": [], "e": []}, "dataset, row 0: field 'tokens' is empty"),
            ({"t": ["a"], "e": ["B-None"]}, "dataset, row 0: field 'entities[0].type' is 'None'"),
            ({"t": ["a"], "e": {"start": [0], "end": []}}, "dataset, row 0: field 'e': zip() argument 2 is shorter"),
        ],
    )
    def test_errors_name_row_and_column(self, row, problem):
        with pytest.raises(CorpusError) as caught:
            adapt_dataset(Dataset.from_list([row]), {"tokens": "t", "entities": "e"})
        assert str(caught.value).startswith(problem)

    def test_empty_lists_are_of_spans_not_of_tags(self):
        def entities(*columns):
            rows = Dataset.from_list([{"t": ["a"], "e": column} for column in columns])
            return adapt_dataset(rows, {"tokens": "t", "entities": "e"})["entities"][:]

        assert entities([], [{"start": 0, "end": 1, "type": "A"}])[0] == entities([])[0] == []
        with pytest.raises(CorpusError, match="dataset, row 1: field 'e' has 0 tags for 1 tokens"):
            entities(["B-A"], [])

    def test_spans_with_other_fields(self):
        span = {"first": 0, "stop": 4, "type": "A"}
        rows = Dataset.from_list([{"body": "Orsk", "words": ["Orsk"], "ents": [span]}])
        for columns in ({"text": "body", "entities": "ents"}, {"tokens": "words", "entities": "ents"}):
            with pytest.raises(CorpusError, match=r"^dataset, row 0: field 'ents\[0\].start' is missing"):
                adapt_dataset(rows, columns)
            size = 4 if "text" in columns else 1
            named = rows.map(lambda _, stop=size - 1: {"ents": [{**span, "stop": stop}]})
            columns |= {"start": "first", "end": "stop", "inclusive_end": True}
            assert spelled(adapt_dataset(named, columns)[0]) == [("Orsk", "A")]

    def test_offsets_that_count_otherwise(self):
        rows = Dataset.from_list([{"body": "😀 to Orsk", "ents": [{"start": 6, "end": 10, "label": "A"}]}])
        columns = {"text": "body", "entities": "ents"}
        assert spelled(adapt_dataset(rows, columns, offsets="utf16")[0]) == [("Orsk", "A")]
        with pytest.raises(CorpusError, match="--offsets"):
            adapt_dataset(rows, columns)
        with pytest.raises(ValueError, match="`offsets` is 'utf8'"):
            adapt_dataset(rows, columns, offsets="utf8")

    def test_class_labels_of_rows_without_annotation(self):
        hidden = TAGGED.select([0]).map(lambda row: {"outer": [-1] * 4})
        with pytest.raises(CorpusError, match=r"test, row 0: field 'outer': .* -1"):
            adapt_dataset(DatasetDict(test=hidden), {"tokens": "words", "entities": "outer"})
        assert len(adapt_dataset(hidden, {"tokens": "words", "entities": "inner"})) == 1  # other columns are not read

    def test_labels_are_allowed_in_every_split(self):
        columns = {"tokens": "words", "entities": "outer"}
        adapted = adapt_dataset(DatasetDict(a=TAGGED, b=TAGGED), columns, labels=iter(["Person"]))
        assert spelled(adapted["b"][0]) == NESTED[:1]

    @pytest.mark.parametrize("form", ["numpy", "pandas", "torch"])
    def test_any_format_is_read(self, form):
        columns = {"tokens": "words", "entities": ["outer", "inner"], "doc_id": "n"}
        assert list(adapt_dataset(TAGGED.with_format(form), columns)) == list(adapt_dataset(TAGGED, columns))

    def test_large_lists(self):
        large = TAGGED.cast(Features({**TAGGED.features, "outer": LargeList(NAMES)}))
        assert spelled(adapt_dataset(large, {"tokens": "words", "entities": "outer"})[0]) == NESTED[:1]

    def test_an_object_of_lists_of_objects_is_no_table(self):
        spans = {"spans": [{"start": 13, "end": 17, "label": "LOC"}], "rel": [1, 2]}
        rows = Dataset.from_list([{"text": "The mayor of Orsk.", "ann": spans}])
        assert spelled(adapt_dataset(rows, {"text": "text", "entities": "ann.spans"}, labels="LOC")[0]) == [
            ("Orsk", "LOC")
        ]

    def test_null_is_no_name(self):
        rows = Dataset.from_dict({"w": [["a"], ["b"]], "e": [["O"], ["O"]], "n": [None, "x"]})
        adapted = adapt_dataset(rows, {"tokens": "w", "entities": "e", "id": "n", "doc_id": "n"})
        assert [(row["id"], row["doc_id"]) for row in adapted] == [("dataset:0", "dataset:0"), ("x", "x")]

    def test_no_rows(self):
        adapted = adapt_dataset(TAGGED.select([]), {"tokens": "words", "entities": "outer"})
        assert (len(adapted), adapted.features) == (0, FEATURES)

    def test_a_table_is_to_be_made_a_data_set(self):
        with pytest.raises(TypeError, match=r"adapt_dataset .*type DataFrame\. Make a data set .*from_list") as caught:
            adapt_dataset(TAGGED.to_pandas(), {"tokens": "words", "entities": "outer"})
        assert "streaming" not in str(caught.value)

    def test_texts_with_the_id_of_an_earlier_one_are_numbered_and_counted(self):
        row = {
            "name": "news-1",
            "text": "Orsk slept. It rained.",
            "entities": [{"start": 0, "end": 4, "label": "City"}],
        }
        adapted = adapt_dataset(Dataset.from_list([row] * 2), {"id": "name", "text": "text", "entities": "entities"})
        assert adapted["id"][:] == ["news-1:0", "news-1:1", "news-1#2:0", "news-1#2:1"]
        assert "texts with the name of an earlier one, numbered: 1" in adapted.info.description

    @pytest.mark.parametrize(
        ("columns", "problem"),
        [
            ({"tokens": "words"}, r"\['tokens'\]"),
            ({"tokens": "words", "text": "x", "entities": "outer"}, r"\['entities', 'text', 'tokens'\]"),
            ({"tokens": "words", "entities": "outer", "lemma": "x"}, "'lemma'"),
            ({"text": "tag", "entities": "outer", "doc_id": "n"}, "'doc_id', 'entities', 'text'"),
            ({"text": "tag", "entities": "outer", "pos": "tag"}, "'entities', 'pos', 'text'"),
            ({"tokens": "words", "entities": ["outer", "nested"]}, r"\['nested'\]"),
            ({"text": "tag", "entities": ["outer", "inner"]}, r"\[\['outer', 'inner'\]\], but the data set has"),
            ({"tokens": ["words"], "entities": "outer"}, r"\[\['words'\]\], but"),
            ({"tokens": "words", "entities": "outer", "pos": None}, r"\[None\], but"),
            ("bigbio", "'bigbio_kb'"),
        ],
    )
    def test_wrong_columns(self, columns, problem):
        with pytest.raises(ValueError, match=problem):
            adapt_dataset(TAGGED, columns)

    def test_rows_of_bigbio(self):
        rows = Dataset.from_list([BIGBIO_RECORD, {**BIGBIO_RECORD, "id": "2", "document_id": "b"}])
        adapted = adapt_dataset(DatasetDict({"train": rows}), "bigbio_kb")["train"]
        assert [(row["id"], len(row["entities"])) for row in adapted] == [("a:0", 2), ("b:0", 2)]
        with pytest.raises(CorpusError, match=r"'passages'.*'tokens'"):
            adapt_dataset(Dataset.from_list([{"tokens": ["a"]}]), "bigbio_kb")
