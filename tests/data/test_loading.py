"""`load_nested_ner`: which files are which split, options, reports, bad records, and what reading costs."""

import json
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from modeling_triaffine.data import FEATURES, FORMATS, CorpusError, load_texts, register_format
from modeling_triaffine.data import load_nested_ner as load
from modeling_triaffine.data.loading import read_parts
from modeling_triaffine.data.schema import Text
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import RECORD, TEXT, changed, entity, json_lines, spelled, write_files
from tests.helpers.corpora import write_json as write
from tests.helpers.format_cases import CASES, SAMPLES

ROW = "{}\tB-X\n\nslept\tO\n"
BRAT = {"x.txt": "The mayor of Orsk.", "x.ann": "T1\tCity 13 17\tOrsk\n", "y.txt": "No one.", "y.ann": ""}
LINE = json.dumps(RECORD)
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"


def tokens(corpus):
    return {split: [row[0] for row in rows["tokens"]] for split, rows in corpus.items()}


def columns(*names):
    return {name: f"{name}\tB-X\n" for name in names}


SPLITS = {
    "names of splits": (columns("train.conll", "Dev.conll", "test.conll"), "train.conll Dev.conll test.conll"),
    "other names of them": (columns("training.tsv", "testa.tsv", "testb.tsv"), "training.tsv testa.tsv testb.tsv"),
    "as endings": (columns("e.train", "e.valid", "e.test"), "e.train e.valid e.test"),
    "inside names": (columns("v1.0-train-de.tsv", "v1.0-dev-de.tsv"), "v1.0-train-de.tsv v1.0-dev-de.tsv"),
    "with set": (columns("trainset.tsv", "x_testSet_2.tsv"), "trainset.tsv - x_testSet_2.tsv"),
    "folders further down": (columns("v1/train/a.tsv", "v1/dev/test.tsv"), "v1/train/a.tsv v1/dev/test.tsv"),
    "files further down": (columns("data/dev.tsv", "data/train.tsv"), "data/train.tsv data/dev.tsv"),
    "the least deep": (columns("x-train.tsv", "raw/train.tsv", "dev.tsv", "raw/test.tsv"), "x-train.tsv dev.tsv"),
    "a file beside a folder": (columns("train.tsv", "train/a.tsv", "dev/b.tsv", "dev/.c"), "train.tsv dev/b.tsv"),
    "several in one name": (columns("x-train.tsv", "train-dev.tsv"), "x-train.tsv"),
    "no split": (columns("a.tsv", "in/b.tsv", "latest.tsv", "contest.tsv"), "a.tsv+contest.tsv+in/b.tsv+latest.tsv"),
    "a split of O alone": ({**columns("train.ner"), "test.ner": "test.ner\tO\n"}, "train.ner - test.ner"),
    "files of O alone": ({**columns("a.txt"), "b.txt": "b.txt\tO\n", "c.txt": "No columns"}, "a.txt+b.txt"),
}


@pytest.mark.parametrize(("files", "expected"), SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("named", [None, "iob2"])
def test_of_a_folder(tmp_path, files, expected, named):
    write_files(tmp_path, files)
    splits = zip(("train", "validation", "test"), expected.split(), strict=False)
    assert tokens(load(tmp_path, named)) == {split: names.split("+") for split, names in splits if names != "-"}


def test_of_a_mapping_and_of_a_folder_for_one_split(tmp_path):
    """Of a folder with splits, the one that is asked for, never all of them together."""
    write_files(tmp_path, {"c/train.jsonl": LINE, "c/dev.jsonl": json.dumps(changed(id="d")), "d/x_dev.jsonl": LINE})
    corpus = load({"dev": tmp_path / "c", "held_out": str(tmp_path / "c/train.jsonl"), "test": tmp_path / "d"})
    ids = {split: rows["id"][:] for split, rows in corpus.items()}
    assert ids == {"validation": ["d"], "held_out": ["a:0"], "test": ["a:0"]}
    assert all(str(rows.split) == split for split, rows in corpus.items())
    with pytest.raises(CorpusError, match=r"c: it is given for test, and has train, validation"):
        load({"test": tmp_path / "c"})
    write_files(tmp_path / "c", {"dev.jsonl": ""})  # is not read
    assert list(load({"train": tmp_path / "c"})) == ["train"]


ERRORS = {
    "two files of a split": ({"dev.jsonl": LINE, "valid.jsonl": LINE}, "dev.jsonl, valid.jsonl could each be its val"),
    "two series": (columns("de_train.tsv", "da_train.tsv"), "da_train.tsv, de_train.tsv could each be"),
    "two forms": ({"a.tsv": ROW, "b.jsonl": LINE}, r"forms, 'iob2' \(a.tsv\), 'json_lines' \(b.jsonl\).*--format"),
    "two folders": (columns("v1/train/a.tsv", "v2/train/a.tsv"), "v1/train, v2/train could each be"),
    "an empty file": ({"train.jsonl": LINE, "test.jsonl": ""}, r"test\.jsonl: the file is empty"),
    "a pointer of Git LFS": ({"x_dev.jsonl": LINE, "x_train.jsonl": LFS}, r"x_train\.jsonl: .* pointer of Git LFS"),
    "a pointer among files": ({"a.jsonl": LINE, "b.jsonl": LFS}, r"b\.jsonl: .* pointer of Git LFS"),
    "names of two splits": (
        {"training_data/train.jsonl": LINE, "training_data/dev.jsonl": LINE},
        r"training_data/dev\.jsonl has the names of several splits.*Give the folder that contains them",
    ),
    "of no format": ({"a.xml": "<TEI>x</TEI>"}, r"a\.xml: .*cannot be detected"),
    "alone of its kind": ({"train.txt": "The mayor slept."}, r"train\.txt: .*cannot be detected"),
    "a table": ({"train.xlsx": "x"}, r"tables are not read.*docs/corpora.md#a-table"),
}


@pytest.mark.parametrize(("files", "problem"), ERRORS.values(), ids=ERRORS)
def test_that_are_not_clear_are_errors(tmp_path, files, problem):
    write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=problem):
        load(tmp_path)


def test_links_to_nowhere_are_files(tmp_path):
    write_files(tmp_path, {"x_dev.jsonl": LINE})
    (tmp_path / "README").symlink_to("nowhere")
    assert list(load(tmp_path)) == ["validation"]
    (tmp_path / "x_train.jsonl").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=r"x_train\.jsonl"):
        load(tmp_path)


def test_files_that_are_not_read_are_told(tmp_path, caplog):
    write_files(tmp_path, {**columns("train.tsv", "held_out.tsv", "news-train.tsv", ".x.tsv"), "labels.json": "{}"})
    assert list(load(tmp_path)) == ["train"]
    assert caplog.messages.pop().endswith("files outside all splits left out: 2 (held_out.tsv, news-train.tsv).")
    with pytest.raises(CorpusError, match=r"held_out\.tsv: its name tells no split"):
        load([str(tmp_path / name) for name in ("train.tsv", "held_out.tsv")])
    write_files(tmp_path, {"test.json": '{"x": 1}', "train.parquet": "PAR1", "train_old.md": "x"})
    load(tmp_path)
    names = "held_out.tsv, news-train.tsv, test.json, …"
    assert caplog.messages.pop().endswith(f"files outside all splits left out: 4 ({names}).")
    write_files(tmp_path / "in", {**columns("a.conll"), "notes.md": "not a sentence", "notes.xml": "<TEI>x</TEI>"})
    load(tmp_path / "in")
    assert caplog.messages.pop().endswith("files of unknown formats left out: 2 (notes.md, notes.xml).")


@pytest.mark.parametrize("format", [None, "ace"])
@pytest.mark.parametrize("given", ["", "*"])
def test_documents_lie_beside_other_files(tmp_path, given, format):
    write_files(tmp_path, {**CASES["ace"].sample(), "notes.xml": "<source_file"})
    assert len(load(tmp_path / given, format=format)["train"]) == 1


@pytest.mark.parametrize("given", [Dataset.from_list([RECORD]), {"train": Dataset.from_list([RECORD])}, [RECORD]])
def test_data_in_memory(given):
    with pytest.raises(TypeError, match=r"is of type (Dataset|dict)\. .* adapt_dataset converts .*from_list"):
        load(given)


def test_other_paths(tmp_path):
    DatasetDict(train=Dataset.from_list([RECORD])).save_to_disk(tmp_path / "saved")
    with pytest.raises(FileNotFoundError, match=r"dataset_dict\.json.* adapt_dataset converts a data set"):
        load(tmp_path / "saved")
    for path in (tmp_path / "nowhere.jsonl", {"train": tmp_path / "*.jsonl"}):
        with pytest.raises(FileNotFoundError, match=r"\.jsonl: no such file"):
            load(path)
    with pytest.raises(ValueError, match="No file is given"):
        load([])
    write(tmp_path / "a.jsonl", RECORD)
    with pytest.raises(ValueError, match="Two files are given for the split 'validation'"):
        load({"dev": tmp_path, "valid": tmp_path})
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no documents or files of a known format.* no files"):
        load({"train": tmp_path / "empty"})


class TestManyFiles:
    """A folder, a list or a pattern of files of one form is one split, and each file a document."""

    @pytest.fixture
    def folder(self, tmp_path):
        write_files(tmp_path, {f"{name}.tsv": ROW.format(name) for name in ("b", "in/a", "in/c")})
        return tmp_path

    @pytest.mark.parametrize("given", [".", "**/*.tsv", ["b.tsv", "*.tsv", "in"]])
    @pytest.mark.parametrize("base", ["absolute", "relative"])
    def test_are_documents(self, folder, given, base, monkeypatch):
        monkeypatch.chdir(folder)
        here = folder if base == "absolute" else Path()
        path = [here / one for one in given] if isinstance(given, list) else here / given
        for corpus in (path, {"train": path}):
            rows = load(corpus)["train"]
            assert rows["doc_id"][:] == ["b", "b", "in/a", "in/a", "in/c", "in/c"]
            assert (rows["sent_id"][:], rows["tokens"][2]) == ([0, 1] * 3, ["in/a"])

    def test_named_by_the_user(self, tmp_path):
        """Whatever they have, if they are given one by one."""
        write_files(tmp_path, {"a.txt": "Orsk\tB-X\n", "a.text": "He\tO\n"})
        assert load([tmp_path / "a.txt", tmp_path / "a.text"], "iob2")["train"]["doc_id"][:] == ["a.txt", "a.text"]
        assert tokens(load(tmp_path / "a.text", "iob2")) == {"train": ["He"]}

    def test_keep_the_documents_that_they_name(self, folder):
        (folder / "b.tsv").write_text("# newdoc id = x\nOrsk\tB-X\n\n# newdoc id = y\nslept\tO\n")
        assert load(folder)["train"]["doc_id"][:2] == ["x", "y"]
        write_files(folder / "u", {f"{name}.conllu": SAMPLES["conllu"]["a.conllu"] for name in "ab"})
        assert [text["doc_id"] for text in load_texts(folder / "u")["train"]] == ["a", "b"]

    def test_pages_with_the_id_of_their_document_are_numbered_and_counted(self, tmp_path, caplog):
        names = (7, "7#2", 7)
        pages = [{"id": name, "text": f"Page {name}.", "entities": [[0, 4, "Word"]]} for name in names]
        rows = load(write(tmp_path / "a.jsonl", *pages))["train"]
        assert rows["id"][:] == ["7:0", "7#2:0", "7#3:0"]
        assert "texts with the name of an earlier one, numbered: 1 (line 3: 7#3)" in caplog.text
        write(tmp_path / "b.jsonl", *pages[1:])
        assert load({"train": tmp_path})["train"]["doc_id"][:] == ["7", "7#2", "7#3", "7#2#2", "7#4"]

    def test_of_brat(self, tmp_path):
        write_files(tmp_path, {f"texts/{name}": content for name, content in BRAT.items()})
        (tmp_path / "LICENSE").write_text("not a form")
        assert load(tmp_path / "texts")["train"]["doc_id"][:] == ["x", "y"]
        assert load(tmp_path)["train"]["doc_id"][:] == ["texts/x", "texts/y"]
        write_files(tmp_path / "named", {f"{split}.{end}": "" for split in ("dev", "test") for end in ("ann", "txt")})
        assert [*load_texts(tmp_path / "named")] == ["validation", "test"]
        write_files(tmp_path / "mine", {f"my-{split}.{end}": "" for split in ("dev", "test") for end in ("ann", "txt")})
        assert [text["doc_id"] for text in load_texts(tmp_path / "mine")["train"]] == ["my-dev", "my-test"]


CITY = entity(0, 1, "City")
GOOD = {"tokens": ["Orsk", "slept"], "entities": [CITY]}
OUTSIDE = {"tokens": ["Orsk"], "entities": [CITY, {"start": 0, "end": 9, "type": "City"}]}


class TestOptions:
    @pytest.mark.parametrize(
        ("format", "options", "problem"),
        [
            ("conllu", {"columns": {"tokens": 0}}, "the format 'conllu' has no columns"),
            ("text_spans", {"offsets": "utf32"}, "`offsets` is 'utf32'. Give one of characters, utf16, bytes"),
            ("text_spans", {"sentence_splitter": "x"}, "`sentence_splitter` is 'x'; choose one of"),
            ("json_lines", {"format": "conll"}, r"There is no format 'conll'. Choose ace, .*brat"),
            ("json_lines", {"word_splitter": "whitespace"}, r"`word_splitter` is .*\. Give a "),
            ("json_lines", {"columns": [0, 1]}, r"`columns` is .*\. Give a "),
        ],
    )
    def test_wrong_values(self, tmp_path, format, options, problem):
        with pytest.raises((TypeError, ValueError), match=problem):
            load(write_files(tmp_path, SAMPLES[format]), **options)

    def test_words_may_be_split_again(self, tmp_path):
        """Those of a corpus of words alone are its text, joined by spaces."""
        words = {"tokens": ["CD28-mediated", "signal"], "left_tokens": ["IL-2"], "pos": ["A", "N"]}
        path = write(tmp_path / "a.jsonl", {**words, "entities": [entity(0, 1)]})
        row = load(path, word_splitter=word_splitter("punctuation"))["train"][0]
        assert row["tokens"] == ["CD28", "-", "mediated", "signal"]
        assert (row["entities"], row["left_tokens"], row["pos"]) == ([entity(0, 3)], ["IL", "-", "2"], [])
        (text,) = load_texts(path)["train"]
        assert (text["text"], text["entities"]) == ("CD28-mediated signal", [entity(0, 13)])


class TestReport:
    def test_of_sentences(self, tmp_path, caplog):
        file = write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1), entity(1, 2), entity(0, 1)], note="x"))
        (part,) = read_parts(file)
        rows, _ = (part.sentences()["train"] for _ in range(2))  # of which one report is told once
        assert rows.features == FEATURES
        assert rows[0]["entities"] == [entity(0, 1), entity(1, 2)]
        assert rows.info.description == (
            "a.jsonl: sentences: 1; entities kept: 2 of 3; duplicate entities dropped: 1; field 'note' ignored: 1."
        )
        assert caplog.messages == [rows.info.description]

    def test_of_texts(self, tmp_path, caplog):
        """White space at an entity's boundaries is none of it, as in the pipeline's output."""
        write_files(tmp_path, {"a.txt": TEXT, "a.ann": "T1\tX 0 3;13 17\tThe Orsk\nT2\tCity 12 18\t Orsk \n"})
        (text,) = load_texts(tmp_path)["train"]
        assert text["entities"] == [entity(13, 17, "City")]
        assert caplog.messages == [
            f"{tmp_path.name}: discontinuous entities dropped: 1 (a.ann, line 1: X [The mayor of Orsk] slept.)."
        ]

    def test_errors_end_with_the_form_that_a_file_was_taken_for(self, tmp_path):
        path = write_files(tmp_path, {"a.json": '{"text": "a", "label": [[0, 9, "X"]]}'})
        for format, how in ((None, "--format (in train --data_format) names another"), ("text_spans", "as named")):
            with pytest.raises(CorpusError) as error:
                load(path, format)
            assert f"Read as 'text_spans' ({FORMATS['text_spans'].description}); {how}." in str(error.value)


def test_a_format_of_a_script_is_recognized_and_named_where_it_fails(tmp_path, command, monkeypatch):
    monkeypatch.setattr(FORMATS, "data", {**FORMATS.data})

    def read(path, check):
        for number, line in enumerate(path.read_text().splitlines()[1:], start=2):
            with check.record():
                if "]" not in line:
                    raise check.error(f"line {number}", "nothing closes", "Close it")
                text = line.replace("[", "").replace("]", "")
                found = check.entity(text, [(line.index("["), line.index("]") - 1)], "City")
                yield Text(doc_id=str(number), text=text, entities=[found] if found else [])

    known = type(FORMATS["brat"])("ours", "ours", read, recognizes=lambda head: head.startswith("#ours"))
    register_format(known)
    register_format(known)  # again, as cells of a notebook
    with pytest.raises(ValueError, match="There is a format 'brat' already"):
        register_format(FORMATS["brat"])
    path = write_files(tmp_path, {"train.txt": "#ours\nIn [Orsk].\n"})
    assert spelled(load(path)["train"][0]) == [("Orsk", "City")]
    assert spelled(load(tmp_path)["train"][0]) == [("Orsk", "City")]
    assert command("statistics", tmp_path, "--format", "ours", "--json").code == 0
    path.write_text("#ours\nIn [Orsk.\n")
    with pytest.raises(CorpusError, match=r"train\.txt, line 2: nothing closes\. Close it\. Read as 'ours'"):
        load(path)


@pytest.mark.parametrize(
    "record",
    [
        {"text": "Ivan came to Orsk. " * 250, "entities": [[19 * n, 19 * n + 4, "PER"] for n in range(250)]},
        {"tokens": ["Ivan", "came"] * 250, "entity_mentions": [entity(n, n + 1) for n in range(250)]},
    ],
    ids=["text_spans", "word_tags"],
)
def test_a_file_is_opened_as_often_however_many_entities_it_has(tmp_path, monkeypatch, record):
    path = write(tmp_path / "a.jsonl", *[record] * 4)
    opened = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *rest, **more: [opened.append(self), real(self, *rest, **more)][1])
    assert sum(map(len, load(path)["train"]["entities"])) == 1000
    assert opened.count(path) == 2  # to detect its format, and to read it


# ---- Bad records ----


def brat(**spans):
    texts = {f"c/{name}.txt": "Orsk slept." for name in spans}
    return texts | {f"c/{name}.ann": f"T1\tCity {span}\tOrsk\nT2\tPlace 0 4\tOrsk\n" for name, span in spans.items()}


QUOTED = {"start": 8, "end": 11, "label": "PER", "text": "Anna"}
BAD = {
    "a line that is no JSON": ({"a.jsonl": json_lines(GOOD, '{"tokens": ["Orsk"', GOOD)}, "a.jsonl", "line 2: ", 2, 2),
    "a record without a field": ({"a.jsonl": json_lines(GOOD, {"tokens": ["a"]}, GOOD)}, "a.jsonl", "line 2: ", 2, 2),
    "an entity outside": ({"a.json": json.dumps([GOOD, OUTSIDE, GOOD])}, "a.json", "record 1: ", 2, 2),
    "a sentence of columns": (
        {"a.tsv": "Orsk\tX\tB-City\n\nOrsk\tX\tB-City\nslept\tO\n\nOrsk\tX\tB-City\n"},
        *("a.tsv", "line 4: ", 2, 2),
    ),
    "bytes that are no UTF-8": (
        {"a.tsv": b"Orsk\tB-City\n\nOrsk\tB-City\nslept\xff\tO\n.\tO\n\nOrsk\tB-City\n"},
        *("a.tsv", "line 4: byte 6 is not valid utf-8", 2, 2),
    ),
    "a document": (brat(a="0 4", b="x", c="0 4"), "c", "b.ann, line 1: ", 2, 4),
    "an entity of a document": (brat(a="0 4", b="1 5", c="0 4"), "c", "b.ann, line 1: field 'T1' quotes 'Orsk'", 3, 5),
    "a quote": (
        {"a.jsonl": json_lines({"text": "Ion saw Ana.", "entities": [[0, 3, "PER"], QUOTED]})},
        *("a.jsonl", r"quotes 'Anna', but from 8 to 11 the text is 'Ion saw \[Ana\].'", 1, 1),
    ),
    "offsets outside of a text": (
        {"a.jsonl": json_lines(*({"text": "Orsk slept.", "label": [[0, end, "City"]]} for end in (4, 99, 4)))},
        *("a.jsonl", "line 2: field 'label.0.' runs from 0 to 99, the text has 11 characters", 3, 2),
    ),
}


@pytest.mark.parametrize(("files", "name", "place", "kept", "entities"), BAD.values(), ids=BAD)
def test_a_bad_record_or_entity_is_dropped_named_and_counted(tmp_path, caplog, files, name, place, kept, entities):
    write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=f"{place}.*--max_bad_records"):
        load(tmp_path / name)
    corpus = load(tmp_path / name, max_bad_records=1)["train"]
    assert (len(corpus), sum(map(len, corpus["entities"]))) == (kept, entities)
    assert caplog.messages == [corpus.info.description]
    assert "bad " in corpus.info.description
    assert len(load_texts(tmp_path / name, max_bad_records=1)["train"]) >= kept


def test_one_more_is_an_error_that_counts_those_before(tmp_path):
    path = write_files(tmp_path, {"a.jsonl": json_lines(GOOD, "{", OUTSIDE, {"tokens": []}, "{", GOOD)})
    with pytest.raises(CorpusError, match=r"line 4: .* 2 were dropped before\. .* --max_bad_records"):
        load(path, max_bad_records=2)
    report = load(path, max_bad_records=4)["train"].info.description
    assert all(f"line {number}: " in report for number in (2, 3, 4, 5))


def test_what_is_no_record_stays_an_error(tmp_path):
    write_files(tmp_path, {"a.json": f"[{json.dumps(GOOD)}, ", "a.xml": "<collection><document>"})
    for name in ("a.json", "a.xml"):
        with pytest.raises(CorpusError, match=f"{name}: invalid|{name}, line 1: invalid"):
            load(tmp_path / name, max_bad_records=9)
    path = write_files(tmp_path, {"b.jsonl": json_lines(OUTSIDE)})
    with pytest.raises(CorpusError, match=r"no sentences\. .*bad records dropped: 1 \(.*line 1: "):
        load(path, max_bad_records=1)
