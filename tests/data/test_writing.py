"""Writers: what was written is read again as the same records, and what a format cannot hold is told."""

import functools
import json
from collections import Counter
from itertools import permutations

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.data import FEATURES, WRITERS, load_nested_ner, load_texts, write_nested_ner
from modeling_triaffine.data.loading import CorpusFiles
from modeling_triaffine.data.writing import write_iob2, write_json_lines
from modeling_triaffine.data.writing_texts import PREDICTION_WRITERS, TextDocument
from modeling_triaffine.model.text_triaffine import INVISIBLE_SPACES, word_splitter
from tests.helpers.corpora import cas_json, read, spelled, triples, write_files

EXACTLY = {"word_splitter": word_splitter("whitespace"), "sentence_splitter": "lines"}
"""How texts are read to have the words and sentences that were written."""
TEXT_FORMS = [name for name, writer in WRITERS.items() if writer.of_texts]


def write(form, records, path):
    return WRITERS[form].write_words(records, path)


def record(tokens, *entities, number=0, doc_id="a", **fields):
    """A sentence; its entities are (start, end, type)."""
    return {
        "id": f"{doc_id}:{number}",
        "doc_id": doc_id,
        "sent_id": number,
        "tokens": tokens.split() if isinstance(tokens, str) else tokens,
        "pos": [],
        "entities": [{"start": start, "end": end, "type": kind} for start, end, kind in entities],
        "left_tokens": None,
        "right_tokens": None,
        **fields,
    }


def ordered(records):
    """Records whose entities are in one order, whatever order the columns had."""
    return [{**one, "entities": sorted(triples(one))} for one in records]


# Characters that have broken readers elsewhere, and any other; brat's words have no white space in them.
CHARACTERS = st.sampled_from('aB#-|"\\O😀é。\u200b\x00') | st.characters(exclude_categories=["Cs", "Z", "Cc"])
TOKENS = st.lists(
    st.text(CHARACTERS, min_size=1, max_size=5).filter(lambda word: word[0] != "\ufeff"), min_size=1, max_size=7
)
SPACED_TOKENS = st.lists(
    st.text(CHARACTERS | st.sampled_from(" \u2028\x85\x1c"), min_size=1, max_size=5), min_size=1, max_size=7
)
TYPES = st.sampled_from(["A", "B", "I-A", "o", "Person/Name", "Ⅳ"])


@st.composite
def corpora(draw, tokens=TOKENS, with_pos=False):
    """Sentences of some documents, numbered from 0, with entities that nest and cross."""
    records = []
    for doc_id in draw(st.lists(st.sampled_from(["a", "b.c", "d/e", "f g"]), unique=True, min_size=1)):
        for number in range(draw(st.integers(1, 3))):
            words = draw(tokens)
            ends = [(start, end) for end in range(1, len(words) + 1) for start in range(end)]
            spans = draw(st.lists(st.tuples(st.sampled_from(ends), TYPES), unique=True, max_size=6))
            pos = draw(st.sampled_from([[], ["X", *["_"] * (len(words) - 1)]])) if with_pos else []
            entities = [(start, end, kind) for (start, end), kind in spans]
            records.append(record(words, *entities, number=number, doc_id=doc_id, pos=pos))
    return records


class TestIdentity:
    @given(corpora(SPACED_TOKENS, with_pos=True), st.sampled_from([None, [], ["so"]]))
    def test_json_lines(self, tmp_path_factory, records, context):
        records = [{**one, "id": f" {one['id']}\n", "left_tokens": context, "right_tokens": context} for one in records]
        file = tmp_path_factory.mktemp("written") / "a.jsonl"
        assert not write_json_lines(records, file)
        assert read(file)[0] == records

    @given(corpora(SPACED_TOKENS, with_pos=True))
    def test_iob2(self, tmp_path_factory, records):
        records = [{**one, "id": f"id {one['id']}"} for one in records]
        file = tmp_path_factory.mktemp("written") / "a.conll"
        assert not write_iob2(records, file)
        again, check = read(file)
        assert ordered(again) == ordered(records)
        assert not check.report()

    @pytest.mark.parametrize("form", ["brat", "bioc_json"])
    @given(records=corpora())
    def test_texts(self, tmp_path_factory, form, records):
        path = tmp_path_factory.mktemp("written") / "a"
        assert not write(form, records, path)
        again, check = read(path, **EXACTLY)
        assert sorted(ordered(again), key=lambda one: one["id"]) == sorted(ordered(records), key=lambda one: one["id"])
        assert not check.report()

    @pytest.mark.parametrize("form", ["bioc", "pubtator"])
    def test_texts_of_two_sentences(self, tmp_path, form):
        records = [
            record("the mayor é😀 < of & Orsk", (0, 7, "P<&"), (6, 7, "City")),
            record("b", (0, 1, "X"), number=1),
        ]
        records += [record("c", doc_id="other")]
        assert not write(form, records, tmp_path / "a")
        again, check = read(tmp_path / "a", **EXACTLY)
        assert ordered(again) == ordered(records)
        assert not check.report()

    @pytest.mark.parametrize("format", WRITERS)
    def test_of_splits(self, tmp_path, format):
        nested = record("the mayor of Orsk", (0, 4, "Person"), (3, 4, "City"))
        splits = {"train": [nested, record("slept", number=1)], "validation": [nested], "test": [nested]}
        corpus = DatasetDict({split: Dataset.from_list(rows, features=FEATURES) for split, rows in splits.items()})
        lost = write_nested_ner(corpus, tmp_path / "new" / "corpus", format)
        assert lost == {split: {} for split in splits}
        again = load_nested_ner(tmp_path / "new" / "corpus", **(EXACTLY if format in TEXT_FORMS else {}))
        assert {split: list(rows) for split, rows in again.items()} == splits


class TestColumns:
    def test_each_level_and_what_crosses_has_a_column(self, tmp_path):
        write_iob2(
            [record("a b c", (0, 2, "X"), (1, 3, "Y"), (0, 1, "Z"), (0, 2, "W")), record("d", number=1)], tmp_path / "a"
        )
        assert (tmp_path / "a").read_text() == (
            "# global.columns = FORM NER:1 NER:2 NER:3\n"
            "# newdoc id = a\n# sent_id = a:0\n"
            "a\tB-W\tB-X\tB-Z\nb\tI-W\tI-X\tB-Y\nc\tO\tO\tI-Y\n\n"
            "# sent_id = a:1\nd\tO\tO\tO\n\n"
        )

    @pytest.mark.parametrize(
        ("broken", "problem"),
        [
            (record(["a\tb"]), r"'a\\tb'"),
            (record(["a\n"]), r"'a\\n'"),
            (record("a", (0, 1, "X\r")), r"'X\\r'"),
            (record("-DOCSTART- a"), "-DOCSTART-"),
            (record(["-DOCSTART- a"]), "-DOCSTART- a"),
            (record("a", (0, 1, "X|O")), r"the type 'X\|O'"),
            (record("a", id=" a"), "the id ' a'"),
            (record("a", doc_id=""), "the doc_id ''"),
            (record("a", doc_id="a\nb"), r"the doc_id 'a\\nb'"),
            (record("a", id="a\tO"), r"the id 'a\\tO'"),
            (record("a", id="a\rO"), r"the id 'a\\rO'"),
        ],
    )
    def test_what_they_cannot_hold(self, tmp_path, broken, problem):
        with pytest.raises(ValueError, match=rf"^Sentence .* has {problem}.*, which iob2 cannot represent"):
            write_iob2([broken], tmp_path / "a")

    def test_what_they_leave_out_is_counted(self, tmp_path):
        records = [record("a", number=3, left_tokens=[], right_tokens=[]), record("a", doc_id="b", pos=["_"])]
        assert write_iob2(records, tmp_path / "a") == {
            "numbers of sentences": 1,
            "sentences with their own context": 1,
            "sentences with tags that are all '_'": 1,
        }

    def test_nothing(self, tmp_path):
        assert write_iob2([], tmp_path / "a") == {}


class TestTexts:
    def test_a_sentence_is_a_line(self, tmp_path):
        records = [record("the mayor", (0, 2, "X")), record("of Orsk", (1, 2, "Y"), (0, 2, "Z"), number=1)]
        write("brat", records, tmp_path / "b")
        assert (tmp_path / "b" / "a.txt").read_text() == "the mayor\nof Orsk"
        assert (
            tmp_path / "b" / "a.ann"
        ).read_text() == "T1\tX 0 9\tthe mayor\nT2\tY 13 17\tOrsk\nT3\tZ 10 17\tof Orsk\n"

    def test_line_ends_are_one_character_in_brat(self, tmp_path):
        """Programs that translate line ends and those that do not find the same characters at an offset."""
        texts = [TextDocument("a", "mayor\r\nof Orsk\rnow", [{"start": 0, "end": 14, "type": "X"}])]
        PREDICTION_WRITERS["brat"](texts, tmp_path / "b")
        assert (tmp_path / "b" / "a.txt").read_bytes() == b"mayor \nof Orsk\nnow"
        assert (tmp_path / "b" / "a.ann").read_bytes() == b"T1\tX 0 6;7 14\tmayor  of Orsk\n"

    @pytest.mark.parametrize("doc_id", ["", ".", "..", "../a", "/a", "a//b", "a/", "./a", ".a", "b/.a", "a\0"])
    def test_document_names_stay_in_the_folder(self, tmp_path, doc_id):
        with pytest.raises(ValueError, match=r"^Document .* name .* brat"):
            write("brat", [record("a", doc_id=doc_id)], tmp_path / "b")
        assert not list((tmp_path / "b").iterdir())

    @pytest.mark.parametrize(
        ("form", "broken", "problem"),
        [
            ("brat", record("a", (0, 1, "two words")), "'two_words'"),
            ("brat", record(["a\nb"]), "line end"),
            ("pubtator", record("a", (0, 1, "b\tc")), "tab"),
            ("pubtator", record("a", (0, 1, "b\nc")), "line end"),
            ("pubtator", record("a", doc_id="x|y"), "'x|y'"),
            ("pubtator", record("a", doc_id=""), "''"),
            ("bioc", record(["a\0"]), r"'\\x00'"),
            ("bioc", record("a", doc_id="x "), "'x '"),
            ("bioc", record("a", doc_id=""), "''"),
            ("bioc_json", record("a", doc_id=""), "''"),
            ("text_spans", record("a", doc_id=""), "''"),
        ],
    )
    def test_what_texts_cannot_hold(self, tmp_path, form, broken, problem):
        with pytest.raises(ValueError, match="cannot represent") as caught:
            write(form, [broken], tmp_path / "b")
        assert problem.replace("\\\\", "\\") in str(caught.value)

    def test_no_document_takes_the_file_of_another(self, tmp_path):
        """As systems do for which A.txt and a.txt are one file."""
        with pytest.raises(FileExistsError, match=r"b\.txt"):
            PREDICTION_WRITERS["brat"]([TextDocument("a/b", "one", []), TextDocument("a/b", "two", [])], tmp_path / "b")

    def test_pubtator_holds_two_sentences(self, tmp_path):
        records = [record(word, (0, 1, "X"), number=number) for number, word in enumerate("abc")]
        assert write("pubtator", records, tmp_path / "a") == {"ends of sentences": 1}
        assert (tmp_path / "a").read_text() == "a|t|a\na|a|b c\na\t0\t1\ta\tX\na\t2\t3\tb\tX\na\t4\t5\tc\tX\n\n"

    def test_what_it_leaves_out_is_counted(self, tmp_path):
        records = [
            record("a", number=5, pos=["X"]),
            record(["a b", "\ufeffc"], doc_id="b", left_tokens=[], right_tokens=[]),
            record(["w"] * 300, doc_id="c", id="mine"),
        ]
        assert write("brat", records, tmp_path / "b") == {
            "ids": 2,
            "numbers of sentences": 1,
            "sentences with their own context": 1,
            "sentences with part-of-speech tags": 1,
            "tokens with white space in them": 2,
        }


# Byte order marks, line ends, decomposed letters, emoji (two UTF-16 units), words without spaces between them.
WRITTEN = st.text(st.sampled_from('aB\r\n\t  .#|\\"<&e\u0301é😀市长\u200b\ufeff\x85\u2028'), min_size=1, max_size=12)


@st.composite
def texts(draw):
    """Texts with entities that begin and end with a visible character, or with a space."""
    documents = []
    for doc_id in draw(st.lists(st.sampled_from(["a", "b.c", "d/e", "f g"]), unique=True, min_size=1, max_size=2)):
        text = draw(WRITTEN)
        spans = [(start, end) for end in range(1, len(text) + 1) for start in range(end)]
        fitting = [span for span in spans if (inside := text[slice(*span)]).strip() and inside == inside.strip("\r\n")]
        visible = [span for span in fitting if text[slice(*span)].translate(INVISIBLE_SPACES).strip()]
        chosen = draw(st.lists(st.tuples(st.sampled_from(visible), TYPES), max_size=4)) if visible else []
        entities = [{"start": start, "end": end, "type": kind} for (start, end), kind in chosen]
        documents.append({"doc_id": doc_id, "text": text, "entities": entities, "borders": []})
    return documents


def as_written(path):
    """The texts of a file or folder, by name, as `convert` takes them; entities in one order."""
    (found,) = CorpusFiles(path).texts(to_convert=True).values()
    return {one["doc_id"]: {**one, "entities": sorted(map(str, one["entities"]))} for one in found}


class TestWrittenTexts:
    @pytest.mark.parametrize(("first", "second"), permutations(TEXT_FORMS, 2))
    @settings(max_examples=15)
    @given(documents=texts())
    def test_stay_as_they_are_from_form_to_form(self, tmp_path_factory, first, second, documents):
        folder = tmp_path_factory.mktemp("written")
        lost = write_nested_ner({"train": documents}, folder / "one", first)["train"]
        again = CorpusFiles(folder / "one").texts(to_convert=True)
        lost += write_nested_ner(again, folder / "two", second)["train"]
        expected = {one["doc_id"]: {**one, "entities": sorted(map(str, one["entities"]))} for one in documents}
        if "pubtator" in (first, second):
            lost.pop("borders of passages", None)  # of title and abstract
            line_ends = sum(one["text"].count(end) for one in documents for end in "\r\n")
            assert lost == +Counter({"line ends (written as spaces)": line_ends})
            flat = str.maketrans("\r\n", "  ")
            expected = {name: {**one, "text": one["text"].translate(flat)} for name, one in expected.items()}
        else:
            assert not lost
        found = {name: {**one, "borders": []} for name, one in as_written(folder / "two").items()}
        assert found == expected

    @pytest.mark.parametrize("form", ["bioc", "bioc_json", "text_spans", "pubtator"])
    def test_passages_stay(self, tmp_path, form):
        text = "The mayor Of Orsk"
        city = {"start": 13, "end": 17, "type": "City"}
        document = {"doc_id": "1", "text": text, "entities": [city], "borders": [9, 10]}
        assert write_nested_ner({"train": [document]}, tmp_path / "a", form) == {"train": {}}
        assert load_texts(tmp_path / "a")["train"] == [document]
        assert len(load_nested_ner(tmp_path / "a")["train"]) == 2
        assert write_nested_ner({"train": [document]}, tmp_path / "b", "brat") == {"train": {"borders of passages": 1}}

    def test_brat_has_no_line_end_at_the_boundary_of_an_entity(self, tmp_path):
        document = {"doc_id": "a", "text": "a\r\nb", "entities": [{"start": 0, "end": 3, "type": "X"}], "borders": []}
        lost = write_nested_ner({"train": [document]}, tmp_path / "a", "brat")["train"]
        assert lost == {"line ends at the boundaries of entities": 1}
        assert (tmp_path / "a" / "train" / "a.txt").read_bytes() == b"a\r\nb"
        assert (tmp_path / "a" / "train" / "a.ann").read_text() == "T1\tX 0 1\ta\n"

    def test_are_none_for_forms_of_words(self, tmp_path):
        document = {"doc_id": "a", "text": "a", "entities": [], "borders": []}
        with pytest.raises(ValueError, match=r"'train' has texts, .* text_spans, brat"):
            write_nested_ner({"train": [document]}, tmp_path / "a", "iob2")

    def test_must_hold_their_entities(self, tmp_path):
        document = {"doc_id": "a", "text": "a", "entities": [{"start": 0, "end": 2, "type": "X"}], "borders": []}
        with pytest.raises(ValueError, match=r"^split 'train', text 0: .*entities\[0\]' runs from 0 to 2"):
            write_nested_ner({"train": [document]}, tmp_path / "a", "brat")


class TestFolder:
    def test_must_be_new_or_empty(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(FileExistsError, match="is not empty"):
            write_nested_ner({"train": [record("a")]}, tmp_path, "json_lines")

    def test_a_type_that_means_no_entity(self, tmp_path):
        with pytest.raises(ValueError, match=r"the type 'O', which would be no type, which iob2 cannot represent"):
            write_nested_ner({"train": [record("a", (0, 1, "O"))]}, tmp_path / "out", "iob2")

    @pytest.mark.parametrize("format", ["iob2", "brat"])
    def test_nothing_is_left_of_what_failed(self, tmp_path, format):
        with pytest.raises(ValueError, match="cannot represent"):
            write_nested_ner(
                {"train": [record("a")], "test": [record("a"), record(["a\nb"], number=1)]}, tmp_path, format
            )
        assert not list(tmp_path.iterdir())
        write_nested_ner({"train": [record("a")]}, tmp_path, format)  # it is as empty as before

    @pytest.mark.parametrize("format", ["json_lines", "brat"])
    @pytest.mark.parametrize(
        ("broken", "problem"),
        [
            (record([], number=1), "'tokens' is empty"),
            (record("a", (0, 2, "X"), number=1), r"entities\[0\]' runs from 0 to 2"),
            (record("a", (0, 1, "None"), number=1), "'None'"),
            (record("a"), "'a:0' was used before"),
        ],
    )
    def test_what_no_reader_takes(self, tmp_path, format, broken, problem):
        with pytest.raises(ValueError, match=rf"^split 'train', sentence 1: .*{problem}"):
            write_nested_ner({"train": [record("a"), broken]}, tmp_path / "new", format)
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("format", ["json_lines", "brat"])
    def test_duplicates_and_other_fields_are_counted(self, tmp_path, format):
        records = [record("a", (0, 1, "X"), (0, 1, "X"), note="b")]
        assert write_nested_ner({"train": records}, tmp_path / "new", format) == {
            "train": {"duplicate entities dropped": 1, "field 'note' ignored": 1}
        }

    def test_any_format_of_a_data_set_is_written_to_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        rows = Dataset.from_list([record("a")], features=FEATURES)
        write_nested_ner({"train": rows.with_format("numpy")}, "~/new", "json_lines")
        assert read(tmp_path / "new" / "train.jsonl")[0] == [record("a")]

    def test_splits_are_named(self, tmp_path):
        rows = Dataset.from_list([record("a")], features=FEATURES)
        with pytest.raises(TypeError, match=r'type Dataset\. Give \{"train": data\}'):
            write_nested_ner(rows, tmp_path / "new", "json_lines")

    def test_unknown_format(self, tmp_path):
        with pytest.raises(ValueError, match=r"'nonesuch'.*json_lines, iob2, text_spans, brat"):
            write_nested_ner({"train": []}, tmp_path / "new", "nonesuch")
        assert not (tmp_path / "new").exists()


class TestConvert:
    @pytest.fixture
    def run(self, command):
        return functools.partial(command, "convert")

    def test_from_texts_to_columns_and_back(self, tmp_path, run):
        (tmp_path / "train.jsonl").write_text('{"text": "Orsk. He ran", "label": [[0, 4, "City"]]}\n')
        first = run(tmp_path, tmp_path / "columns", "--to", "iob2", "--sentences", "none")
        second = run(tmp_path / "columns", tmp_path / "lines")
        (row,) = load_nested_ner(tmp_path / "lines")["train"]
        assert (row["tokens"], spelled(row)) == (["Orsk", ".", "He", "ran"], [("Orsk", "City")])
        for result in (first, second):
            assert "train: 1 sentences with 1 entities written.\n" in result.err
            assert not result.out

    def test_texts_stay_byte_for_byte_and_words_get_a_line(self, tmp_path, run):
        """Entities that no words could hold, and line ends, too."""
        text = "Somatic-cell\r\n😀 市长 CD28-positive \n".encode()
        annotations = "T1\tX 0 7\tSomatic\nT2\tX 16 17\t市\nT3\tX 19 21\tCD\nT4\tX 19 24\tCD28-\n"
        write_files(tmp_path / "in" / "train", {"a/b.txt": text, "a/b.ann": annotations})
        assert "train: 1 texts with 4 entities written.\n" in run(tmp_path / "in", tmp_path / "1", "--to", "bioc").err
        run(tmp_path / "1", tmp_path / "2", "--to", "text_spans")
        result = run(tmp_path / "2", tmp_path / "3", "--to", "brat")
        assert "words" not in result.err
        for suffix in (".txt", ".ann"):
            again, first = ((tmp_path / folder / "train" / "a" / f"b{suffix}").read_bytes() for folder in ("3", "in"))
            assert again == first
        run(tmp_path / "in", tmp_path / "words")
        assert "words joined by spaces" in run(tmp_path / "words", tmp_path / "joined", "--to", "brat").err
        result = run(tmp_path / "in", tmp_path / "4", "--to", "brat", "--sentences", "lines")
        assert (result.code, "--sentences lines: brat has whole texts" in result.err) == (2, True)

    def test_texts_stay_beside_a_split_of_words(self, tmp_path, run):
        files = {"a.txt": b"Orsk\tslept.  He ran\r\n", "a.ann": "T1\tCity 0 3\tOrs\n"}
        write_files(tmp_path / "in" / "test", files)
        write_files(tmp_path / "in", {"train.tsv": "Orsk\tB-City\n"})
        said = run(tmp_path / "in", tmp_path / "out", "--to", "brat").err
        assert "train: 1 sentences with 1 entities" in said
        assert "test: 1 texts with 1 entities" in said
        for name in files:
            assert (tmp_path / "out" / "test" / name).read_bytes() == (tmp_path / "in" / "test" / name).read_bytes()

    def test_offsets_that_count_otherwise(self, tmp_path, run, caplog):
        (tmp_path / "train.jsonl").write_text(json.dumps({"text": "😀市长去了奥尔斯克市", "label": [[6, 10, "City"]]}))
        run(tmp_path, tmp_path / "1", "--to", "brat")
        assert "cannot be checked, as nothing quotes them, and are taken to count characters: 1 (" in caplog.text
        run(tmp_path, tmp_path / "2", "--to", "text_spans", "--offsets", "utf16")
        (text,) = load_texts(tmp_path / "2")["train"]
        assert text["entities"] == [{"start": 5, "end": 9, "type": "City"}]
        (row,) = load_nested_ner(tmp_path, offsets="utf16", word_splitter=word_splitter("characters"))["train"]
        assert triples(row) == [(5, 9, "City")]
        with pytest.raises(ValueError, match=r"`offsets` is 'java'. Give one of characters, utf16"):
            load_nested_ner(tmp_path, offsets="java")
        run(tmp_path, tmp_path / "words")
        assert "has words, not offsets" in run(tmp_path / "words", tmp_path / "3", "--offsets", "utf16").err

    def test_another_layer_of_a_cas(self, tmp_path, run):
        pytest.importorskip("cassis")
        write_files(tmp_path / "in", {"a.json": cas_json((13, 17, "City"), layer="webanno.custom.Term")})
        wrong = run(tmp_path / "in", tmp_path / "wrong")
        assert (wrong.code, wrong.err.count("'webanno.custom.Term'")) == (2, 1)
        result = run(tmp_path / "in", tmp_path / "out", "--columns", "entities=webanno.custom.Term:value")
        assert "train: 1 sentences with 1 entities written.\n" in result.err

    def test_what_is_not_kept_is_told(self, tmp_path, run):
        (tmp_path / "a.conll").write_text("Orsk NNP B-NP B-City\n")
        columns = ("tokens=0", "pos=1", "entities=3")
        result = run(tmp_path / "a.conll", tmp_path / "out", "--to", "brat", "--columns", *columns)
        assert "1 entities written; sentences with part-of-speech tags not kept: 1." in result.err

    @pytest.mark.parametrize(
        "column", ["entities", "entities=", "entities=a", "tokens=", "tokens=a", "=1", "entities=1,a"]
    )
    def test_wrong_columns(self, run, tmp_path, column):
        (tmp_path / "a.conll").write_text("Orsk B-City\n")
        assert run(tmp_path / "a.conll", tmp_path / "out", "--columns", column).code == 2
