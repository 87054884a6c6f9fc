"""Which files of a corpus are which split, and which are left out."""

import json
import os
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from modeling_triaffine.data import CorpusError, load_texts
from modeling_triaffine.data import load_nested_ner as load
from modeling_triaffine.data.formats.ldc import AnnotationFiles
from tests.helpers.corpora import RECORD, changed, write_files
from tests.helpers.corpora import write_json as write
from tests.helpers.format_cases import SAMPLES

DOCUMENTS = {"x.txt": "The mayor of Orsk.", "x.ann": "T1\tCity 13 17\tOrsk\n", "y.txt": "No one.", "y.ann": ""}


class TestSplits:
    @pytest.mark.parametrize(
        "name", ["dev", "devel", "develop", "development", "val", "valid", "validation", "eval", "testa", "Dev"]
    )
    def test_of_a_folder(self, tmp_path, name):
        write(tmp_path / f"{name}.jsonl", RECORD)
        write(tmp_path / "test.jsonl", RECORD)
        write(tmp_path / "train.jsonl", RECORD, changed(id="a:1"))
        (tmp_path / "README.md").write_text("not a split")
        corpus = load(tmp_path)
        assert {split: len(rows) for split, rows in corpus.items()} == {"train": 2, "validation": 1, "test": 1}
        assert list(corpus) == ["train", "validation", "test"]
        assert all(str(rows.split) == split for split, rows in corpus.items())

    def test_of_a_mapping(self, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        assert list(load({"dev": file, "held_out": str(file)})) == ["validation", "held_out"]

    def test_of_a_folder_for_one_split(self, tmp_path, caplog):
        """Of a folder with splits, the one that is asked for, never all of them together."""
        (folder := tmp_path / "corpus").mkdir()
        for name, ids in (("train", "abc"), ("dev", "d"), ("notes", "e")):
            write(folder / f"{name}.jsonl", *(changed(id=one) for one in ids))
        corpus = load({"test": folder / "notes.jsonl", "dev": folder, "train": [folder / "train.jsonl"]})
        assert {split: list(rows["id"]) for split, rows in corpus.items()} == {
            "test": ["e"],
            "validation": ["d"],
            "train": ["a", "b", "c"],
        }
        with pytest.raises(CorpusError, match=r"corpus: it is given for test, and has train, validation"):
            load({"test": folder})

    def test_one_split_twice(self, tmp_path):
        file = write(tmp_path / "dev.jsonl", RECORD)
        with pytest.raises(ValueError, match="'validation'"):
            load({"dev": file, "valid": file})
        write(tmp_path / "valid.jsonl", RECORD)
        with pytest.raises(CorpusError, match=r"dev\.jsonl and valid\.jsonl.*validation"):
            load(tmp_path)

    def test_folder_without_splits(self, tmp_path, caplog):
        write(tmp_path / "corpus.jsonl", RECORD)
        (tmp_path / "notes.md").write_text("not a sentence")
        for named in ("json_lines", None):
            assert list(load(tmp_path, named)) == ["train"]
            assert caplog.messages.pop().endswith("files of unknown formats left out: 1 (notes.md).")
        write(tmp_path / "other-test.jsonl", RECORD)
        for named in ("json_lines", None):
            with pytest.raises(CorpusError, match=r"other-test\.jsonl could be a split, .*--train_file, .* mapping"):
                load(tmp_path, named)

    @pytest.mark.parametrize("name", ["da_news_{}.jsonl", "CMeEE-V2_{}.jsonl", "in/news-{}.jsonl.gz", "{}.jsonl"])
    def test_folder_of_one_file(self, tmp_path, name, caplog):
        """Which needs no other one that differs from it in the split alone."""
        path = write_files(tmp_path, {name.format("dev"): json.dumps(RECORD), "README.md": "not a sentence"})
        for named in ("json_lines", None):
            assert {split: rows["id"][:] for split, rows in load(tmp_path, named).items()} == {"validation": ["a:0"]}
        assert load({"test": path.parent})["test"]["id"][:] == ["a:0"] if name != "{}.jsonl" else True
        write_files(tmp_path, {"other.jsonl": json.dumps(changed(id="b"))})
        if name != "{}.jsonl":
            with pytest.raises(CorpusError, match="could be a split, but no name tells those of the other files"):
                load(tmp_path)

    @pytest.mark.parametrize("name", ["en_x-ud-{}.jsonl", "wl.{}.jsonl", "v1.0-{}-de.jsonl", "{}Set_2.JSONL"])
    def test_in_the_middle_of_names(self, tmp_path, name, caplog):
        for split in ("train", "dev", "test"):
            write(tmp_path / name.format(split), RECORD)
            write(tmp_path / f"._{name.format(split)}", RECORD)
        write(tmp_path / "other-test.jsonl", RECORD)
        assert list(load(tmp_path)) == ["train", "validation", "test"]
        assert caplog.messages[0].endswith("1 (other-test.jsonl).")

    def test_in_the_middle_of_names_of_several_series(self, tmp_path):
        for name in ("de_train", "da_train", "da_test", "de_test", "latest_test", "contest"):
            write(tmp_path / f"{name}.jsonl", RECORD)
        with pytest.raises(CorpusError, match=r"both da_\* and de_\*, with a split for \*,.*mapping"):
            load(tmp_path)
        write(tmp_path / "de_dev.jsonl", RECORD)
        assert list(load(tmp_path)) == ["train", "validation", "test"]
        write(tmp_path / "train.jsonl", RECORD)
        assert list(load(tmp_path)) == ["train"], "names of splits alone come first"

    @pytest.mark.parametrize("name", ["NCBI{}set_corpus.jsonl", "eng{}.jsonl", "{}NER.jsonl", "{}1.jsonl"])
    def test_inside_words(self, tmp_path, name, caplog):
        for split in ("train", "dev", "test"):
            write(tmp_path / name.format(split), RECORD)
        for other in ("latest", "contest", "devices"):
            write(tmp_path / f"{other}.jsonl", RECORD)
        assert list(load(tmp_path)) == ["train", "validation", "test"]
        assert "files outside all splits left out: 3 (contest.jsonl, devices.jsonl, latest.jsonl)" in caplog.text
        for other in ("devices", "latest", name.format("dev")[:-6], name.format("test")[:-6]):
            (tmp_path / f"{other}.jsonl").unlink()
        write(tmp_path / "contest.jsonl", changed(id="b"))
        assert {split: len(rows) for split, rows in load(tmp_path).items()} == {"train": 2}, "each differs in more"

    @pytest.mark.parametrize(("content", "problem"), [("", "is empty"), ('{"sentence": "Orsk"}', "of no known form")])
    def test_that_cannot_be_read(self, tmp_path, content, problem, caplog):
        """A split is not left out for a fault in its file."""
        write(tmp_path / "train.jsonl", RECORD)
        write(tmp_path / "dev.jsonl", RECORD)
        (tmp_path / "test.py").write_text("import sys")
        (tmp_path / "test.jsonl").write_text(content)
        with pytest.raises(CorpusError, match=rf"test\.jsonl: .*{problem}.* To leave it out, .* --validation_file"):
            load(tmp_path)
        assert len(load({"train": tmp_path})["train"]) == 1
        with pytest.raises(CorpusError, match=rf"test\.jsonl: .*{problem}"):
            load({"test": tmp_path})
        (tmp_path / "test.jsonl").unlink()
        assert list(load(tmp_path)) == ["train", "validation"]

    def test_in_several_files(self, tmp_path):
        for name in ("train-00000-of-00001", "test-00000-of-00001"):
            write(tmp_path / f"{name}.jsonl", RECORD)
        assert list(load(tmp_path)) == ["train", "test"]
        (tmp_path / "train-00000-of-00001.jsonl").rename(tmp_path / "train-00000-of-00010.jsonl")
        with pytest.raises(CorpusError, match=r"train-00000-of-00010\.jsonl is one of 10 parts of a split, of which 1"):
            load(tmp_path)
        (tmp_path / "train-00000-of-00010.jsonl").rename(tmp_path / "train-00000-of-00002.jsonl")
        write(tmp_path / "train-00001-of-00002.jsonl", changed(id="a:1"))
        assert load(tmp_path)["train"]["id"][:] == ["a:0", "a:1"]
        (tmp_path / "train").mkdir()
        write(tmp_path / "train" / "train-00000-of-00002.jsonl", RECORD)
        write(tmp_path / "train" / "train-00001-of-00002.jsonl", changed(id="a:1"))
        assert len(load({"train": tmp_path / "train"})["train"]) == 2
        write(tmp_path / "train.jsonl", RECORD)
        assert len(load(tmp_path)["train"]) == 1, "the parts may stay beside the file that they were joined in"

    def test_folders_of_files(self, tmp_path):
        texts = [{"text": f"Orsk {name}.", "entities": [[0, 4, "City"]]} for name in "ab"]
        for split in ("train", "dev"):
            (tmp_path / split).mkdir()
            for text in texts:
                write(tmp_path / split / f"{text['text'][5]}.json", text)
            (tmp_path / split / "README.md").write_text("not a document")
        (tmp_path / "train.log").write_text("no file of the split")
        corpus = load(tmp_path)
        assert [rows["doc_id"] for rows in corpus.values()] == [["a:0", "b:0"]] * 2
        assert [text["text"] for text in load_texts(tmp_path)["train"]] == [text["text"] for text in texts]
        assert load(tmp_path, streaming=True)["train"].take(2)
        write(tmp_path / "train" / "c.json", {"text": "No one.", "entities": []})
        assert len(load({"train": tmp_path / "train"})["train"]) == 3  # not the cache
        write(tmp_path / "dev" / "b.json", {"text": "Orsk", "entities": [[0, 9, "City"]]})
        with pytest.raises(CorpusError, match=r"b\.json.*9"):
            load(tmp_path)

    def test_parts_of_a_split_have_names_of_their_own(self, tmp_path):
        city = json.dumps({"text": "Orsk", "entities": [[0, 4, "City"]]})
        write_files(tmp_path, {"train/a.1.json": city, "train/a.2.json.gz": city})
        assert load(tmp_path)["train"]["doc_id"][:] == ["a.1:0", "a.2:0"]
        write_files(tmp_path, {"train/a.2.jsonl": city})
        with pytest.raises(CorpusError, match=r"a\.2\.json\.gz and a\.2\.jsonl would .* names\. Rename"):
            load(tmp_path)

    def test_an_id_in_two_parts_of_a_split(self, tmp_path):
        write_files(tmp_path, {f"{name}.jsonl": json.dumps(RECORD) for name in "ab"})
        with pytest.raises(CorpusError, match=r"b\.jsonl, line 1: .*'a:0' was used before, at .*a\.jsonl, line 1"):
            load({"train": tmp_path})

    def test_pages_with_the_id_of_their_document_are_numbered_and_counted(self, tmp_path, caplog):
        pages = [{"id": 7, "text": f"Page {number}.", "entities": [[0, 4, "Word"]]} for number in range(3)]
        for name, records in (("a", pages), ("b", pages[1:])):
            write_files(tmp_path, {f"{name}.jsonl": "".join(json.dumps(record) + "\n" for record in records)})
        rows = load(tmp_path / "a.jsonl")["train"]
        assert rows["id"][:] == ["7:0", "7#2:0", "7#3:0"]
        assert "documents with the id of an earlier one, numbered: 2 (line 2: 7#2 | line 3: 7#3)" in caplog.text
        assert load({"train": tmp_path})["train"]["doc_id"][:] == ["7", "7#2", "7#3", "7#4", "7#5"]
        assert [text["doc_id"] for text in load_texts(tmp_path / "a.jsonl")["train"]] == ["7", "7#2", "7#3"]

    def test_as_files_and_folders(self, tmp_path, caplog):
        row = "{}\tB-City\n"
        names = ("train.conll", "train/a.conll", "dev/a.conll", "dev/b.conll", "dev/c.txt", "dev/in/d.conll", "dev/.e")
        write_files(tmp_path, {name: row.format(name) for name in names})
        corpus = load(tmp_path)
        assert {split: rows["tokens"][:] for split, rows in corpus.items()} == {
            "train": [["train.conll"]],
            "validation": [["dev/a.conll"], ["dev/b.conll"], ["dev/c.txt"], ["dev/in/d.conll"]],
        }
        assert corpus["validation"]["doc_id"][:] == ["a", "b", "c", "in/d"], "every file is a document"
        load({"dev": tmp_path / "dev"})
        (message,) = caplog.messages
        assert message.endswith("files outside all splits left out: 1 (train/a.conll).")

    @pytest.mark.parametrize("names", [["train.txt", "valid.txt", "test.txt"], ["e.train", "e.testa", "e.testb"]])
    @pytest.mark.parametrize(("named", "tag"), [("iob2", "B-X"), (None, "B-X"), (None, "I-X")])
    def test_files_of_any_ending(self, tmp_path, names, named, tag):
        for name in names:
            (tmp_path / name).write_text(f"{name}\t{tag}\nslept\tO\n")
        (tmp_path / "README").touch()
        found = {split: rows["tokens"][:] for split, rows in load(tmp_path, named).items()}
        assert found == {
            split: [[name, "slept"]] for split, name in zip(("train", "validation", "test"), names, strict=True)
        }
        (tmp_path / "train.conll").write_text("known\tB-X\n")
        assert load(tmp_path, named)["train"]["tokens"][:] == [["known"]], "the format's own endings come first"

    def test_another_file_of_a_split_is_told(self, tmp_path, caplog):
        files = {"news.dev.conll": "Orsk\tB-X\n", "news.test": "Orsk slept\n", "news.test.conll": "Orsk\tB-X\n"}
        write_files(tmp_path, files)
        assert load(tmp_path)["test"]["tokens"][:] == [["Orsk"]]
        assert caplog.messages[0].endswith("files outside all splits left out: 1 (news.test).")

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("train.txt", "cannot be detected"),
            ("train.xlsx", "tables are"),
            ("train-00000-of-00002.parquet", "tables are"),
        ],
    )
    def test_files_of_no_known_format(self, tmp_path, name, problem):
        (tmp_path / name).write_text("The mayor slept.")
        with pytest.raises(CorpusError, match=rf"{name}: .*{problem}"):
            load(tmp_path)

    def test_files_that_are_not_read_are_told(self, tmp_path, caplog):
        for name in ("train.jsonl", "training.2.jsonl", "held_out.jsonl.gz", ".train.jsonl"):
            write(tmp_path / name, RECORD)
        (tmp_path / "labels.json").write_text("{}")
        assert list(load(tmp_path)) == ["train"]
        (tmp_path / "dev.conll").write_text("Orsk\tB-X\n")
        assert list(load(tmp_path, "json_lines")) == ["train"]
        first, second = caplog.messages
        assert first.startswith(f"{tmp_path}: ")
        assert first.endswith("2 (held_out.jsonl.gz, training.2.jsonl).")
        assert second.endswith("3 (dev.conll, held_out.jsonl.gz, training.2.jsonl).")

    @pytest.mark.parametrize("given", [Dataset.from_list([RECORD]), {"train": Dataset.from_list([RECORD])}, [RECORD]])
    def test_data_in_memory(self, given):
        with pytest.raises(TypeError, match=r"is of type (Dataset|dict)\. .* adapt_dataset, .*from_list"):
            load(given)

    @pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.arrow", "a.xlsx", "in/train.csv"])
    def test_tables(self, tmp_path, name):
        path = write_files(tmp_path, {name: "id,text,start\n1,a,0\n"})
        with pytest.raises((CorpusError, FileNotFoundError), match=r"table of entities, docs/corpora.md#a-table"):
            load(tmp_path / "in" if name.startswith("in/") else path)

    def test_data_sets_saved_by_datasets(self, tmp_path):
        DatasetDict(train=Dataset.from_list([RECORD])).save_to_disk(tmp_path / "saved")
        for path in (tmp_path / "saved", {"train": tmp_path / "saved" / "train"}):
            with pytest.raises(CorpusError, match=r"saved by save_to_disk\. Load .* write_nested_ner"):
                load(path)

    def test_missing_file(self, tmp_path):
        for path in (tmp_path / "nowhere.jsonl", {"train": tmp_path / "nowhere.jsonl"}):
            with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl: no such file"):
                load(path)

    def test_folder_as_a_split(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="folder without documents"):
            load({"train": tmp_path})


class TestManyFiles:
    """A folder, a list or a pattern of files of one form is one split, and each file a document."""

    COLUMNS = "{}\tB-X\n\nslept\tO\n"

    @pytest.fixture
    def folder(self, tmp_path):
        write_files(tmp_path, {f"{name}.tsv": self.COLUMNS.format(name) for name in ("b", "in/a", "in/c")})
        return tmp_path

    @pytest.mark.parametrize("given", [".", "**/*.tsv", ["b.tsv", "in/*.tsv"], ["b.tsv", "in"]])
    @pytest.mark.parametrize("base", ["absolute", "relative"])
    def test_are_documents(self, folder, given, base, monkeypatch):
        monkeypatch.chdir(folder)
        here = folder if base == "absolute" else Path()
        path = [here / one for one in given] if isinstance(given, list) else here / given
        for corpus in (path, {"train": path}):
            rows = load(corpus)["train"]
            assert rows["doc_id"][:] == ["b", "b", "in/a", "in/a", "in/c", "in/c"]
            assert (rows["sent_id"][:], rows["tokens"][2]) == ([0, 1] * 3, ["in/a"])

    def test_keep_the_documents_that_they_name(self, folder):
        (folder / "b.tsv").write_text("# newdoc id = x\nOrsk\tB-X\n\n# newdoc id = y\nslept\tO\n")
        assert load(folder)["train"]["doc_id"][:2] == ["x", "y"]

    def test_of_conllu_have_their_texts(self, tmp_path):
        write_files(tmp_path, {f"{name}.conllu": SAMPLES["conllu"]["a.conllu"] for name in "ab"})
        assert [text["doc_id"] for text in load_texts(tmp_path)["train"]] == ["a", "b"]

    def test_with_names_of_splits_are_splits(self, tmp_path):
        names = ("x-dev", "x-test", "x-train")
        write_files(tmp_path, {f"{name}.tsv": self.COLUMNS.format(name) for name in names})
        for path in (tmp_path, tmp_path / "*.tsv", [tmp_path / f"{name}.tsv" for name in names]):
            assert list(load(path)) == ["train", "validation", "test"]

    def test_a_pattern_that_nothing_matches(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"\*\.conllu: no such file"):
            load(tmp_path / "*.conllu")
        with pytest.raises(ValueError, match="No file is given"):
            load([])

    def test_a_file_that_is_given_twice_is_read_once(self, folder):
        once, twice = (load(given)["train"] for given in (folder / "b.tsv", [folder / "b.tsv", folder / "*.tsv"]))
        assert once["id"][:] == twice["id"][:]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_no_corpus(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CorpusError, match="it is a pipe, but a corpus is read more than once"):
            load(tmp_path / "pipe")

    def test_of_a_format_that_takes_one_folder(self, tmp_path):
        for name in "ab":
            write_files(tmp_path / name, {"x.txt": "Orsk", "x.ann": "T1\tCity 0 4\tOrsk\n"})
        with pytest.raises(CorpusError, match=r"several files or folders of the format 'brat' .* Give one folder"):
            load([tmp_path / name / "x.ann" for name in "ab"])

    def test_of_a_format_that_takes_one_folder_beside_others(self, tmp_path):
        for name in ("a", "b"):
            write_files(tmp_path / name, DOCUMENTS)
        write(tmp_path / "c.jsonl", RECORD)
        for given in (["a", "c.jsonl"], ["a", "b"]):
            with pytest.raises(CorpusError, match=r"of which a is of the format 'brat'\. Give one folder"):
                load([tmp_path / name for name in given])

    def test_with_texts_beside_them_are_not_searched_for_each(self, tmp_path, monkeypatch):
        write_files(tmp_path, {f"{name}.json": json.dumps({"text": "Orsk", "denotations": []}) for name in "ab"})
        write_files(tmp_path, {f"{name}.txt": "Orsk" for name in "abcdefgh"})
        searches = []
        monkeypatch.setattr(AnnotationFiles, "find", lambda self, *rest: searches.append(self))
        load(tmp_path)
        assert not searches

    def test_of_two_forms_side_by_side(self, folder):
        write_files(folder, {"lines/a.jsonl": json.dumps(RECORD), "README.md": "not a form"})
        facts = r"several forms, 'iob2' \(3: b\.tsv, in/: 2\), 'json_lines' \(1: lines/a\.jsonl\)\. .* --format .*iob2"
        with pytest.raises(CorpusError, match=facts):
            load(folder)
        assert len(load(folder, "iob2")["train"]) == 6
        assert len(load(folder / "lines")["train"]) == 1

    def test_of_documents_beside_another_form(self, tmp_path, caplog):
        write_files(tmp_path, {f"texts/{name}": content for name, content in DOCUMENTS.items()})
        write_files(tmp_path, {"test/p.test": "Orsk\tB-X\n", "test/p.train": "Orsk\tB-X\n", "LICENSE": "not a form"})
        assert load(tmp_path)["train"]["doc_id"][:] == ["texts/x", "texts/y"]
        assert caplog.messages[0].endswith("files of other forms left out: 2 (test/: 2).")

    def test_of_one_split_in_two_folders(self, tmp_path):
        folders = [write_files(tmp_path / version / "train", DOCUMENTS).parent for version in ("v1", "v2")]
        with pytest.raises(CorpusError, match=r"both v1/train and v2/train could be its train split"):
            load(folders)

    def test_folders_of_splits_further_down(self, tmp_path):
        write_files(tmp_path, {f"v1/{split}/a.tsv": "Orsk\tB-X\n" for split in ("train", "dev")})
        with pytest.raises(CorpusError, match=rf"its folder v1/dev could be a split\. .*, {tmp_path}/v1\."):
            load(tmp_path)

    def test_files_of_splits_further_down(self, tmp_path):
        write_files(tmp_path, {f"data/{split}.tsv": "Orsk\tB-X\n" for split in ("train", "dev")})
        with pytest.raises(CorpusError, match=rf"its file data/dev\.tsv could be a split\. .*, {tmp_path}/data\."):
            load(tmp_path)


class TestCopies:
    """The same documents in several folders of a corpus as it is downloaded."""

    def test_are_read_once(self, tmp_path, caplog):
        for folder in ("all", "sample"):
            write_files(tmp_path / folder, DOCUMENTS)
        write_files(tmp_path / "sample", {"z.txt": "The mayor of Orsk.", "z.ann": ""})
        assert load(tmp_path)["train"]["doc_id"][:] == ["all/x", "all/y", "sample/z"]
        assert "copies of documents in another folder left out: 2 (sample/x, as in all | " in caplog.messages[0]

    def test_of_columns(self, tmp_path):
        write_files(tmp_path, {f"{name}.tsv": "Orsk\tB-X\n" for name in ("all/a", "all/b", "one/a")})
        assert load(tmp_path)["train"]["doc_id"][:] == ["all/a", "all/b"]

    def test_with_other_entities_are_told(self, tmp_path, caplog):
        write_files(tmp_path / "anna", DOCUMENTS)
        write_files(tmp_path / "bert", {**DOCUMENTS, "x.ann": "T1\tTown 13 17\tOrsk\n"})
        assert load(tmp_path)["train"]["doc_id"][:] == ["anna/x", "anna/y", "bert/x"]
        assert (
            "documents in two folders with different entities, both read: 1 (bert/x, as in anna)" in caplog.messages[0]
        )

    def test_in_two_splits_are_told(self, tmp_path, caplog):
        for folder in ("train", "test"):
            write_files(tmp_path / folder, DOCUMENTS)
        assert [len(rows) for rows in load(tmp_path).values()] == [2, 2]
        assert caplog.messages[0].endswith("files that are the same in another split: 3 (test/: 3).")
