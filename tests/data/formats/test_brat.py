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
        write(write(write(write(tmp_path, "b"), "sub/c"), "a.1"), "LICENSE", annotations=None)
        write(write(tmp_path, "._a", annotations="\0"), ".git/b")
        records, check = read(tmp_path)
        assert list(dict.fromkeys(record["doc_id"] for record in records)) == ["a.1", "b", "sub/c"]
        assert check.counts == {"texts without .ann ignored": 1}
        assert {record["doc_id"] for record in read(tmp_path / "b.ann")[0]} == {"b"}

    def test_empty(self, tmp_path):
        write(write(tmp_path, "a"), "b", text="", annotations="")
        assert "texts without words ignored: 1 (b.ann)" in read(tmp_path)[1].report()
        (tmp_path / "a.ann").unlink()
        with pytest.raises(CorpusError, match=r"no sentences.*texts without words.*Read as 'brat'"):
            load(tmp_path)

    def test_of_shared_tasks_of_bionlp(self, tmp_path):
        files = {"a.txt": TEXT, "a.a1": NESTED, "a.a2": "T3\tSleep 18 23\tslept\nE1\tSleep:T3\n"}
        write_files(tmp_path / "devel", files)
        write_files(tmp_path / "train", files)
        corpus = load(tmp_path)
        assert list(corpus) == ["train", "validation"]
        assert spelled(corpus["train"][0]) == [("The mayor of Orsk", "Person"), ("Orsk", "City")]
        assert "text-bound annotations of .a2 ignored: 1 (a.a2)" in corpus["train"].info.description

    def test_line_ends_of_windows(self, tmp_path):
        annotations = f"{NESTED}T3\tCity 35 39\tOrsk\n".replace("\n", "\r\n")
        write(tmp_path, text=TEXT.replace("\n", "\r\n"), annotations=annotations)
        with pytest.raises(CorpusError, match=r"a\.ann, line 3: field 'T3' quotes 'Orsk'.*--offsets"):
            load(tmp_path)
        rows = load(tmp_path, offsets="characters_lf")["train"]
        assert [spelled(row)[-1] for row in rows] == [("Orsk", "City")] * 2

    def test_folders_named_as_splits(self, tmp_path, caplog):
        for split in ("train", "dev", "test"):
            write(tmp_path / split, f"doc-{split}")
        write_files(write(tmp_path, "more/b"), {"README.txt": "x"})
        corpus = load(tmp_path)
        names = {"train": {"doc-train"}, "validation": {"doc-dev"}, "test": {"doc-test"}}
        assert {split: set(rows["doc_id"]) for split, rows in corpus.items()} == names
        assert caplog.messages[0].endswith("files outside all splits left out: 1 (more/b.ann).")
        corpus = load({"train": tmp_path / "dev", "dev": tmp_path / "more" / "b.ann"}, format="brat")
        assert {split: set(rows["doc_id"]) for split, rows in corpus.items()} == {
            "train": {"doc-dev"},
            "validation": {"b"},
        }

    def test_texts_with_a_split_in_their_names(self, tmp_path):
        write(write(tmp_path, "a-train"), "a-test")
        assert set(load(tmp_path)["train"]["doc_id"]) == {"a-train", "a-test"}


class TestLines:
    @pytest.mark.parametrize("quote", ["Orsk City", "Orsk\n\n City"])
    def test_an_entity_over_a_line_end_is_one(self, tmp_path, quote):
        annotations = f"T1\tX 4 8;10 14\t{quote}\nT2\tY 4 8\tOrsk\n"
        (record,), check = read(write(tmp_path, text="the Orsk\n City", annotations=annotations))
        assert spelled(record) == [("Orsk City", "X"), ("Orsk", "Y")]
        assert not check.report()

    def test_all_but_text_bound_ones_are_counted(self, tmp_path):
        others = ["R1\tIn Arg1:T1 Arg2:T2", "E1\tSleep:T3 Who:T1", "A1\tOld T1", "M1\tNegation E1", "*\tAlias T1 T2"]
        others += ["N1\tReference T2 Wiki:Q1 Orsk", "#1\tAnnotatorNotes T1\tT9\tfine", "rest of a quote", ""]
        annotations = NESTED + "T3\tSleep 18 23\tslept\n" + "\n".join(others)
        records, check = read(write(tmp_path, annotations=annotations))
        assert spelled(records[0])[-1] == ("slept", "Sleep")
        what = ["relations", "events", "attributes", "equivalences", "normalizations", "notes"]
        counts = {f"{one} ignored": 1 + (one == "attributes") for one in what}
        assert check.counts == {**counts, "lines that are not annotations ignored": 1}

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("T3\tRole 4 9;13 17\tmayor [...] Orsk", "discontinuous entities dropped"),
            ("T3\tRole 4 9;13 17\tsomething else", "discontinuous entities dropped"),
            ("T3\tRole 4 4\t", "entities of white space alone dropped"),
            ("T3\tRole 4 4", "entities of white space alone dropped"),
            ("T3\tRole 4 4;9 9\t", "entities of white space alone dropped"),
        ],
    )
    def test_what_no_sentence_can_hold_is_dropped(self, tmp_path, line, why):
        records, check = read(write(tmp_path, annotations=f"{NESTED}{line}\n"))
        assert spelled(records[0]) == [("The mayor of Orsk", "Person"), ("Orsk", "City")]
        assert check.counts == {why: 1}
