"""brat's standoff form: folders of documents, what its lines become, and what broken ones are told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, load_nested_ner
from modeling_triaffine.data.brat import BRAT
from tests.helpers.corpora import read, spelled

TEXT = "The mayor of Orsk slept.\nShe likes Orsk."
NESTED = "T1\tPerson 0 17\tThe mayor of Orsk\nT2\tCity 13 17\tOrsk\n"


def write(folder, name="a", text=TEXT, annotations=NESTED):
    """A document; `None` leaves its file out."""
    for suffix, content in ((".txt", text), (".ann", annotations)):
        file = folder / f"{name}{suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def load(tmp_path):
    def load(path, **options):
        return load_nested_ner(path, cache_dir=tmp_path.parent / f"{tmp_path.name}-cache", **options)

    return load


class TestDocuments:
    def test_become_sentences(self, tmp_path):
        records, check = read(write(tmp_path, annotations=NESTED + "T3\tCity 35 39\tOrsk\n"))
        assert [record["tokens"] for record in records] == [
            ["The", "mayor", "of", "Orsk", "slept", "."],
            ["She", "likes", "Orsk", "."],
        ]
        assert [spelled(record) for record in records] == [
            [("The mayor of Orsk", "Person"), ("Orsk", "City")],
            [("Orsk", "City")],
        ]
        assert [(record["id"], record["sent_id"]) for record in records] == [("a:0", 0), ("a:1", 1)]
        assert not check.report()

    def test_of_folders_in_the_folder_and_in_order(self, tmp_path):
        write(write(write(tmp_path, "b"), "sub/c"), "a.1")
        records, _ = read(tmp_path)
        assert list(dict.fromkeys(record["doc_id"] for record in records)) == ["a.1", "b", "sub/c"]

    def test_one_alone(self, tmp_path):
        records, _ = read(write(tmp_path, "b") / "b.ann")
        assert {record["doc_id"] for record in records} == {"b"}

    def test_without_entities(self, tmp_path):
        (record,), check = read(write(tmp_path, text="One two.", annotations=""))
        assert (record["tokens"], record["entities"]) == (["One", "two", "."], [])
        assert not check.report()

    def test_empty(self, tmp_path, load):
        write(write(tmp_path, "a"), "b", text="", annotations="")
        _, check = read(tmp_path)
        assert "texts without a word ignored: 1 (b.ann)" in check.report()
        (tmp_path / "a.ann").unlink()
        with pytest.raises(CorpusError, match=r"there is no sentence in it, read as 'brat'.*texts without a word"):
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

    def test_byte_order_mark_and_windows_line_ends(self, tmp_path):
        text = TEXT.replace("\n", "\r\n")
        annotations = ("\ufeff" + NESTED + "T3\tCity 35 39\tOrsk\n").replace("\n", "\r\n")
        records, check = read(write(tmp_path, text=text, annotations=annotations))
        assert [spelled(record)[-1] for record in records] == [("Orsk", "City")] * 2
        assert "other counts of characters, converted: 1 (a.ann)" in check.report()


class TestLines:
    def test_an_entity_over_a_line_end_is_one(self, tmp_path):
        (record,), check = read(write(tmp_path, text="the Orsk\n City", annotations="T1\tX 4 8;10 14\tOrsk City\n"))
        assert spelled(record) == [("Orsk City", "X")]
        assert not check.report()

    def test_discontinuous_entities_are_dropped_and_shown(self, tmp_path):
        annotations = "T1\tLung 0 4;15 19\tleft lung\nT2\tLung 9 19\tright lung\n"
        (record,), check = read(write(tmp_path, text="left and right lung", annotations=annotations))
        assert spelled(record) == [("right lung", "Lung")]
        assert check.report() == (
            f"{tmp_path.name}: sentences: 1; entities kept: 1 of 2; discontinuous entities dropped: 1 "
            "(a.ann: Lung [left and right lung])."
        )

    def test_all_but_text_bound_ones_are_counted(self, tmp_path):
        others = ["R1\tIn Arg1:T1 Arg2:T2", "E1\tSleep:T3 Who:T1", "A1\tOld T1", "M1\tNegation E1", "*\tAlias T1 T2"]
        others += ["N1\tReference T2 Wiki:Q1 Orsk", "#1\tAnnotatorNotes T1\tT9\tfine", "#2\tAnnotatorNotes T1\tok", ""]
        annotations = NESTED + "T3\tSleep 18 23\tslept\n" + "\n".join(others)
        records, check = read(write(tmp_path, annotations=annotations))
        assert spelled(records[0])[-1] == ("slept", "Sleep")
        counts = {"relations": 1, "events": 1, "attributes": 2, "equivalences": 1, "normalizations": 1, "notes": 2}
        assert check.counts == {f"{what} ignored": number for what, number in counts.items()}

    def test_options(self, tmp_path):
        records, _ = read(
            write(tmp_path, text="A-b\nc", annotations=""),
            sentence_splitter="lines",
            word_splitter=lambda text: [(0, 1)],
        )
        assert [record["tokens"] for record in records] == [["A"], ["c"]]


BROKEN = {
    "another line": ("X1\tPerson 0 3\tThe", "a.ann, line 3: 'X1\\tPerson 0 3\\tThe' is no annotation"),
    "spaces": ("T3 Person 0 3 The", "a.ann, line 3: 'T3 Person 0 3 The' is no text-bound annotation"),
    "no text": ("T3\tPerson 0 3", "a.ann, line 3: 'T3\\tPerson 0 3' is no text-bound annotation"),
    "no end": ("T3\tPerson 0\tThe", "a.ann, line 3: 'T3\\tPerson 0\\tThe' is no text-bound annotation"),
    "no number": ("T3\tPerson 0 -3\tThe", "a.ann, line 3: 'T3\\tPerson 0 -3\\tThe' is no text-bound annotation"),
    "huge": (f"T3\tX 0 {'9' * 5000}\tThe", "a.ann, line 3: 'T3\\tX 0 99999"),
    "outside": ("T3\tX 35 99\tOrsk.", "a.ann, line 3: field 'T3' runs from 35 to 99, the text has 40 characters"),
    "backwards": ("T3\tX 3 0\tThe", "a.ann, line 3: field 'T3' runs from 3 to 0"),
    "type": ("T3\tNone 0 3\tThe", "a.ann, line 3: field 'T3.type' is 'None', the name for what is no entity"),
    "label": ("T3\tDog 0 3\tThe", "a.ann, line 3: field 'T3.type' is 'Dog', which is not among the labels"),
    "text": (
        "T3\tX 0 3\tShe",
        "a.ann, line 3: 'T3' is noted as 'She', but from 0 to 3 the text is '[The] mayor of Orsk",
    ),
    "not utf-8": (b"T3\tX 0 3\t\xe9", "a.ann: byte 62 is not utf-8. Save the file as UTF-8"),
}


class TestErrors:
    @pytest.mark.parametrize(("line", "problem"), BROKEN.values(), ids=BROKEN)
    def test_name_folder_file_and_line(self, tmp_path, line, problem):
        line = line if isinstance(line, bytes) else line.encode()
        write(tmp_path, annotations=NESTED.encode() + line)
        with pytest.raises(CorpusError) as caught:
            read(tmp_path, labels=["Person", "City", "X"])
        assert str(caught.value).startswith(f"{tmp_path}, {problem}")
        assert "\n" not in str(caught.value)

    def test_annotations_without_their_text(self, tmp_path):
        write(tmp_path, "sub/a", text=None)
        for path in (tmp_path, tmp_path / "sub" / "a.ann"):
            with pytest.raises(
                CorpusError, match=r"a\.ann: there is no a\.txt beside it.*Put it there, or remove a\.ann"
            ):
                read(path)

    def test_a_text_of_another_encoding(self, tmp_path):
        with pytest.raises(CorpusError, match=r"a\.txt: byte 4 is not utf-8"):
            read(write(tmp_path, text="caf\xe9".encode("latin-1")))


class TestLoading:
    def test_a_folder_is_train_and_streams_alike(self, tmp_path, load, caplog):
        write(tmp_path, annotations=NESTED + "R1\tIn Arg1:T1 Arg2:T2\n")
        loaded, streamed = load(tmp_path), load(tmp_path, streaming=True)
        assert list(loaded) == list(streamed) == ["train"]
        assert list(loaded["train"]) == list(streamed["train"])
        report = f"{tmp_path.name}: sentences: 2; entities kept: 2 of 2; relations ignored: 1."
        assert caplog.messages == [report, report]
        assert loaded["train"].info.description == report

    def test_folders_named_as_splits(self, tmp_path, load):
        for split in ("train", "dev", "test"):
            write(tmp_path / split, f"doc-{split}")
        (tmp_path / "README.md").write_text("x")
        corpus = load(tmp_path)
        assert {split: set(rows["doc_id"]) for split, rows in corpus.items()} == {
            "train": {"doc-train"},
            "validation": {"doc-dev"},
            "test": {"doc-test"},
        }

    def test_folders_named_in_a_mapping(self, tmp_path, load):
        write(write(tmp_path, "one/a"), "two/a")
        corpus = load({"train": tmp_path / "one", "dev": tmp_path / "two" / "a.ann"}, format="brat")
        assert {split: len(rows) for split, rows in corpus.items()} == {"train": 2, "validation": 2}

    def test_a_changed_document_is_read_again(self, tmp_path, load):
        write(tmp_path)
        assert len(load(tmp_path)["train"]) == 2
        assert load(tmp_path)["train"].cache_files == load(tmp_path)["train"].cache_files
        write(tmp_path, text=TEXT + " It rained.")
        assert len(load(tmp_path)["train"]) == 3

    def test_documents_beside_the_folders_of_splits(self, tmp_path, load):
        write(write(tmp_path, "train/a"), "more/b")
        with pytest.raises(CorpusError, match=r"b\.ann lies outside the folders that are its splits\. Name what is"):
            load(tmp_path)

    def test_documents_named_as_splits(self, tmp_path, load):
        write(write(tmp_path, "train"), "test")
        with pytest.raises(CorpusError, match=r"not clear whether test\.ann is a document or a split"):
            load(tmp_path)
        assert len(load({"train": tmp_path})["train"]) == 4

    def test_a_folder_of_other_things(self, tmp_path, load):
        write(tmp_path / "corpus", annotations=None)
        with pytest.raises(FileNotFoundError, match=r"no file is named train.*no documents.*It holds \['a\.txt'\]"):
            load(tmp_path / "corpus")
        with pytest.raises(CorpusError, match="is a folder, and not one of documents"):
            load({"train": tmp_path / "corpus"}, format="brat")

    def test_splitters(self, tmp_path, load):
        write(tmp_path)
        assert len(load(tmp_path, sentence_splitter="none")["train"]) == 1
        with pytest.raises(ValueError, match="`sentence_splitter` is 'words'; choose one of"):
            load(tmp_path, sentence_splitter="words")


@settings(deadline=None)
@given(
    st.binary(max_size=40),
    st.one_of(st.binary(max_size=40), st.text(st.sampled_from("T1\tX 023;\r\n\0a"), max_size=40)),
)
def test_whatever_the_files_hold(tmp_path_factory, text, annotations):
    """They are read, or told to be broken."""
    folder = write(tmp_path_factory.mktemp("brat"), text=text, annotations=annotations)
    try:
        records = list(BRAT.read(folder, RecordChecker(folder)))
    except CorpusError:
        return
    spaceless = "".join(text.decode().removeprefix("\ufeff").split())
    assert "".join("".join("".join(record["tokens"]).split()) for record in records) == spaceless
