"""brat's standoff format: folders of documents and the lines of annotations."""

import pytest

from modeling_triaffine.data import CorpusError
from modeling_triaffine.data import load_nested_ner as load
from tests.helpers.corpora import read, spelled, write_files

TEXT = "The mayor of Orsk slept.\nShe likes Orsk."
NESTED = "T1\tPerson 0 17\tThe mayor of Orsk\nT2\tCity 13 17\tOrsk\n"


def write(folder, name="a", text=TEXT, annotations=NESTED):
    """A document; `None` leaves its file out."""
    contents = {f"{name}.txt": text, f"{name}.ann": annotations}
    write_files(folder, {file: content for file, content in contents.items() if content is not None})
    return folder


class TestDocuments:
    def test_of_folders_in_the_folder_and_in_order(self, tmp_path):
        write(write(write(tmp_path, "b"), "sub/c"), "a.1")
        records, _ = read(tmp_path)
        assert list(dict.fromkeys(record["doc_id"] for record in records)) == ["a.1", "b", "sub/c"]

    def test_one_alone(self, tmp_path):
        records, _ = read(write(tmp_path, "b") / "b.ann")
        assert {record["doc_id"] for record in records} == {"b"}

    def test_empty(self, tmp_path):
        write(write(tmp_path, "a"), "b", text="", annotations="")
        _, check = read(tmp_path)
        assert "texts without words ignored: 1 (b.ann)" in check.report()
        (tmp_path / "a.ann").unlink()
        with pytest.raises(CorpusError, match=r"no sentences.*texts without words.*Read as 'brat'"):
            load(tmp_path)

    def test_a_text_without_annotations_is_reported(self, tmp_path):
        records, check = read(write(write(tmp_path), "LICENSE", annotations=None))
        assert {record["doc_id"] for record in records} == {"a"}
        assert "texts without .ann ignored: 1 (LICENSE.txt)" in check.report()

    def test_hidden_files_are_none(self, tmp_path):
        write(write(write(tmp_path), "._a", annotations="\0"), ".git/b")
        records, check = read(tmp_path)
        assert {record["doc_id"] for record in records} == {"a"}
        assert not check.report()

    def test_of_shared_tasks_of_bionlp(self, tmp_path):
        files = {"a.txt": TEXT, "a.a1": NESTED, "a.a2": "T3\tSleep 18 23\tslept\nE1\tSleep:T3\n"}
        write_files(tmp_path / "devel", files)
        write_files(tmp_path / "train", files)
        corpus = load(tmp_path)
        assert list(corpus) == ["train", "validation"]
        assert spelled(corpus["train"][0]) == [("The mayor of Orsk", "Person"), ("Orsk", "City")]
        assert set(corpus["train"]["doc_id"]) == {"a"}
        assert "text-bound annotations of .a2 ignored: 1 (a.a2)" in corpus["train"].info.description
        assert "of .a2 ignored: 1" in read(tmp_path / "train" / "a.a1")[1].report()

    def test_byte_order_mark_and_windows_line_ends(self, tmp_path):
        text = TEXT.replace("\n", "\r\n")
        annotations = ("\ufeff" + NESTED + "T3\tCity 35 39\tOrsk\n").replace("\n", "\r\n")
        records, check = read(write(tmp_path, text=text, annotations=annotations))
        assert [spelled(record)[-1] for record in records] == [("Orsk", "City")] * 2
        assert "texts with other character counts converted: 1 (a.ann)" in check.report()


class TestLines:
    def test_an_entity_over_a_line_end_is_one(self, tmp_path):
        (record,), check = read(write(tmp_path, text="the Orsk\n City", annotations="T1\tX 4 8;10 14\tOrsk City\n"))
        assert spelled(record) == [("Orsk City", "X")]
        assert not check.report()

    def test_quotes_with_line_ends(self, tmp_path):
        annotations = "T1\tX 4 14\tOrsk\n\n City\nT2\tY 4 8\tOrsk\n"
        (record,), check = read(write(tmp_path, text="the Orsk\n City", annotations=annotations))
        assert spelled(record) == [("Orsk City", "X"), ("Orsk", "Y")]
        assert not check.report()

    def test_rests_of_lines_are_counted(self, tmp_path):
        records, check = read(write(tmp_path, annotations=f"{NESTED}of the quote of another\n"))
        assert len(records[0]["entities"]) == 2
        assert "lines that are not annotations ignored: 1 (a.ann, line 3)" in check.report()

    def test_all_but_text_bound_ones_are_counted(self, tmp_path):
        others = ["R1\tIn Arg1:T1 Arg2:T2", "E1\tSleep:T3 Who:T1", "A1\tOld T1", "M1\tNegation E1", "*\tAlias T1 T2"]
        others += ["N1\tReference T2 Wiki:Q1 Orsk", "#1\tAnnotatorNotes T1\tT9\tfine", "#2\tAnnotatorNotes T1\tok", ""]
        annotations = NESTED + "T3\tSleep 18 23\tslept\n" + "\n".join(others)
        records, check = read(write(tmp_path, annotations=annotations))
        assert spelled(records[0])[-1] == ("slept", "Sleep")
        counts = {"relations": 1, "events": 1, "attributes": 2, "equivalences": 1, "normalizations": 1, "notes": 2}
        assert check.counts == {f"{what} ignored": number for what, number in counts.items()}

    @pytest.mark.parametrize(
        "quote", ["mayor [...] Orsk", "mayor Orsk", "mayor ... Orsk", "mayor … Orsk", "mayor of Orsk", "something else"]
    )
    def test_discontinuous_entities_are_dropped_whatever_they_quote(self, tmp_path, quote):
        write(tmp_path, annotations=f"{NESTED}T3\tRole 4 9;13 17\t{quote}\n")
        records, check = read(tmp_path)
        assert spelled(records[0]) == [("The mayor of Orsk", "Person"), ("Orsk", "City")]
        assert check.counts == {"discontinuous entities dropped": 1}

    @pytest.mark.parametrize("line", ["T3\tRole 4 4\t\n", "T3\tRole 4 4\n", "T3\tRole 4 4;9 9\t\n"])
    def test_annotations_without_characters_are_dropped(self, tmp_path, line):
        write(tmp_path, annotations=NESTED + line)
        records, check = read(tmp_path)
        assert spelled(records[0]) == [("The mayor of Orsk", "Person"), ("Orsk", "City")]
        assert check.report().endswith("entities without characters dropped: 1 (a.ann, line 3: T3).")


class TestLoading:
    def test_folders_named_as_splits(self, tmp_path):
        for split in ("train", "dev", "test"):
            write(tmp_path / split, f"doc-{split}")
        (tmp_path / "README.txt").write_text("x")
        corpus = load(tmp_path)
        assert {split: set(rows["doc_id"]) for split, rows in corpus.items()} == {
            "train": {"doc-train"},
            "validation": {"doc-dev"},
            "test": {"doc-test"},
        }

    def test_folders_named_in_a_mapping(self, tmp_path):
        write(write(tmp_path, "one/a"), "two/a")
        corpus = load({"train": tmp_path / "one", "dev": tmp_path / "two" / "a.ann"}, format="brat")
        assert {split: len(rows) for split, rows in corpus.items()} == {"train": 2, "validation": 2}

    def test_documents_beside_the_folders_of_splits(self, tmp_path, caplog):
        write(write(tmp_path, "train/a"), "more/b")
        assert set(load(tmp_path)["train"]["doc_id"]) == {"a"}
        assert caplog.messages[0].endswith("files outside all splits left out: 1 (more/b.ann).")

    def test_folders_of_splits_further_down(self, tmp_path):
        write(write(tmp_path, "v1/train/brat/a"), "v1/dev/brat/b")
        with pytest.raises(CorpusError, match=r"its folder v1/dev could be a split"):
            load(tmp_path)
        write(tmp_path / "other", "train/brat/a")
        assert list(load(tmp_path / "other")) == ["train"]

    def test_texts_with_a_split_in_their_names(self, tmp_path):
        write(write(tmp_path, "a-train"), "a-test")
        (tmp_path / "labels-train.json").write_text("{}")
        (tmp_path / "labels-test.json").write_text("{}")
        assert set(load(tmp_path)["train"]["doc_id"]) == {"a-train", "a-test"}

    def test_documents_named_as_splits(self, tmp_path):
        write(write(tmp_path, "train"), "test")
        with pytest.raises(CorpusError, match=r"test\.ann"):
            load(tmp_path)
        assert len(load({"train": tmp_path})["train"]) == 4

    def test_a_folder_of_other_things(self, tmp_path):
        write(tmp_path / "corpus", annotations=None)
        with pytest.raises(FileNotFoundError, match=r"\['a\.txt'\].* \.txt files \(1\) need \.ann files beside"):
            load(tmp_path / "corpus")
        write_files(tmp_path / "corpus", {"b/INITIAL_CAS.zip": b""})
        with pytest.raises(FileNotFoundError, match=r"folder without documents.* \.ann .*; ZIP archives in it \(1\)"):
            load({"train": tmp_path / "corpus"}, format="brat")

    def test_splitters(self, tmp_path):
        write(tmp_path)
        assert len(load(tmp_path, sentence_splitter="none")["train"]) == 1
        with pytest.raises(ValueError, match="`sentence_splitter` is 'nonesuch'; choose one of"):
            load(tmp_path, sentence_splitter="nonesuch")
