"""The texts of corpora as they were written, and their sentences cut by any word splitter."""

import json

import pytest

from modeling_triaffine.data import CorpusError, load_nested_ner, load_texts
from modeling_triaffine.data.formats.written_words import Row, written_text
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import TEXT, TEXT_RECORD, region, spelled, task, write_files


def rows(*cells: str) -> list[Row]:
    """Rows from "ID FORM" or "ID FORM MISC"."""
    split = [cell.split(" ") for cell in cells]
    return [Row(number, form, "SpaceAfter=No" in "".join(misc)) for number, form, *misc in split]


@pytest.mark.parametrize(
    ("cells", "comment", "text", "words"),
    [
        (["1 A SpaceAfter=No", "2 , x=y|SpaceAfter=No", "3 b"], "", "A,b", ["A", ",", "b"]),
        (["1 A", "2 ,", "3 b"], "A,  b", "A,  b", ["A", ",", "b"]),
        (["1 A", "2 b"], "A b c", "A b", ["A", "b"]),  # comments that say something else
        (["1 A", "2 b"], "A c b", "A b", ["A", "b"]),
        (["1-2 don't SpaceAfter=No", "1 do", "2 n't", "3 ,"], "", "don't,", ["do", "n't", ","]),
        (["1-2 du", "1 de", "2 le", "3 roi"], "", "du roi", ["du", "du", "roi"]),
        (["1 a", "1.1 left-out", "2 b"], "", "a b", ["a", "b"]),
    ],
    ids=["space-after", "comment", "longer-comment", "other-comment", "parts-in-order", "contraction", "empty-node"],
)
def test_text_of_a_sentence_of_conllu(cells, comment, text, words):
    written, offsets = written_text(rows(*cells), comment)
    assert (written, [written[start:end] for start, end in offsets]) == (text, words)


CONLLU = """\
# newdoc id = a
# text = The CD28-mediated one.
1 The Entity=(1-thing
2 CD28 Entity=(2-protein)|SpaceAfter=No
3 -mediated _
4 one Entity=1)|SpaceAfter=No
5 . _

# newpar
1 It Entity=(1-thing)

# newdoc id = b
1 So _
"""


@pytest.fixture
def conllu(tmp_path):
    lines = [line.split(" ") for line in CONLLU.split("\n")]
    text = "\n".join(
        " ".join(line) if line[0] in ("", "#") else "\t".join([*line[:2], *"_" * 7, line[2]]) for line in lines
    )
    return write_files(tmp_path, {"a.conllu": text})


def test_documents_of_conllu(conllu):
    first, second = load_texts(conllu)["train"]
    assert first["text"] == "The CD28-mediated one.\n\nIt"
    assert {first["text"][e["start"] : e["end"]] for e in first["entities"]} == {"The CD28-mediated one", "CD28", "It"}
    assert (second["doc_id"], second["text"], second["entities"]) == ("b", "So", [])


def test_conllu_in_the_words_of_raw_text(conllu, tmp_path):
    splitter = word_splitter("punctuation")
    record, *_ = load_nested_ner(conllu, word_splitter=splitter)["train"]
    assert record["tokens"] == ["The", "CD28", "-", "mediated", "one", "."]
    assert set(spelled(record)) == {("The CD28 - mediated one", "thing"), ("CD28", "protein")}


def docbin(folder, *more):
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("en")(TEXT)
    doc.spans["sc"] = [doc.char_span(start, end, label) for start, end, label in (*TEXT_RECORD["label"], *more)]
    spacy.tokens.DocBin(docs=[doc]).to_disk(folder / "a.spacy")
    return folder / "a.spacy"


FILES = {
    "text_spans": {"a.jsonl": json.dumps({**TEXT_RECORD, "label": [[0, 17, "Person"], [12, 18, "City"]]})},
    "label_studio": {"a.json": json.dumps([task(region(0, 17, "Person"), region(13, 17, "City"))])},
    "brat": {"a.txt": TEXT, "a.ann": "T1\tPerson 0 17\tThe mayor of Orsk\nT2\tCity 13 17\tOrsk\n"},
    "docbin": docbin,
}


@pytest.mark.parametrize("format", FILES)
def test_texts_of_every_format_that_has_them(tmp_path, format):
    """White space at an entity's boundaries is none of it, as in the pipeline's output."""
    files = FILES[format]
    path = files(tmp_path) if callable(files) else write_files(tmp_path, files)
    (document,) = load_texts(tmp_path if format == "brat" else path, format)["train"]
    assert document["text"] == TEXT
    assert [(e["start"], e["end"], e["type"]) for e in document["entities"]] == [(0, 17, "Person"), (13, 17, "City")]


@pytest.mark.parametrize("format", ["brat", "docbin"])
def test_what_texts_cannot_hold_is_reported(tmp_path, caplog, format):
    if format == "docbin":
        docbin(tmp_path, (0, 3, ""))
        report = "a.spacy: spans without a label dropped: 1 (document 0: [The] mayor of Orsk slept…)."
    else:
        write_files(tmp_path, {"a.txt": TEXT, "a.ann": "T1\tX 0 3;13 17\tThe Orsk\n"})
        report = f"{tmp_path.name}: discontinuous entities dropped: 1 (a.ann: X [The mayor of Orsk] slept.)."
    load_texts(tmp_path if format == "brat" else tmp_path / "a.spacy", format)
    assert caplog.messages == [report]


def test_a_corpus_of_words_alone_has_no_texts(tmp_path):
    path = write_files(tmp_path, {"a.jsonl": json.dumps({"tokens": ["a"], "entities": []})})
    with pytest.raises(CorpusError, match=r"a\.jsonl.*'json_lines'.*genia"):
        load_texts(path)
