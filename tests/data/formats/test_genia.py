"""The reader of GENIA's XML: the corpus' rules on small articles, and the counts of the whole file."""

import os

import pytest

from modeling_triaffine.data import corpus_statistics, load_nested_ner, load_texts
from modeling_triaffine.data.formats.genia import SPLIT_STARTS
from tests.helpers.corpora import article, cons, genia, read, spelled, write_files

PARTS = '<cons lex="*a">A</cons> and <cons lex="*b">B</cons>'
KINDS = {
    "G#DNA_N/A": "DNA",
    "G#RNA_molecule": "RNA",
    "G#protein_complex": "protein",
    "G#cell_line": "cell_line",
    "G#cell_type": "cell_type",
    "G#cell_component": "other",
    "G#other_name": "other_name",
    "(OR G#other_name G#other_name)": "coordination",
}
NESTED = cons("G#DNA_domain_or_region", cons("G#protein_molecule", "Il-9") + " gene")
OF_SEVERAL_TYPES = " ".join(
    (
        cons("G#protein_molecule", cons("G#DNA_molecule", "a")),
        cons("G#cell_line", " " + cons("G#cell_line", "b")),
        cons("G#DNA_molecule", cons("G#protein_molecule", "c")),
    )
)
COORDINATED = " ".join(
    (
        cons("(AND G#protein_molecule G#protein_molecule)", PARTS + " " + cons("G#RNA_molecule", "c")),
        cons("(BUT_NOT G#cell_line (OR G#cell_line G#cell_line))", PARTS),
        cons("(OR G#other_name G#other_name)", PARTS),
    )
)
DUPLICATE = {"duplicate entities dropped": 1}
# Name → a title, the format, its words, its entities, and what is counted.
RULES = {
    "words end at white space and tags": (
        f"The {NESTED}-like\n  &lt;one&gt;.",
        "genia",
        "The Il-9 gene -like <one>.",
        [("Il-9", "protein"), ("Il-9 gene", "DNA")],
        {},
    ),
    "coordinations are counted": (
        *(COORDINATED, "genia", "A and B c A and B A and B", [("c", "RNA")]),
        {"coordinated entities dropped": 2},
    ),
    "the last type of a span stays": (
        *(OF_SEVERAL_TYPES, "genia", "a b c", [("a", "protein"), ("b", "cell_line"), ("c", "protein")]),
        {**DUPLICATE, "further types of a span dropped": 2},
    ),
    "all types of a span": (
        *(OF_SEVERAL_TYPES, "genia_all_types", "a b c"),
        [("a", "DNA"), ("a", "protein"), ("b", "cell_line"), ("c", "DNA"), ("c", "protein")],
        DUPLICATE,
    ),
    "types that the literature leaves out": (
        " ".join(cons(sem, f"w{n}") for n, sem in enumerate(KINDS)) + " " + cons("G#x", cons("G#DNA_x", "y")),
        "genia_other_types",
        "w0 w1 w2 w3 w4 w5 w6 w7 y",
        [*((f"w{n}", kind) for n, kind in enumerate(KINDS.values())), ("y", "DNA")],
        {"further types of a span dropped": 1},
    ),
    "the five types": (
        *(" ".join(cons(sem, f"w{n}") for n, sem in enumerate([*KINDS, ""])), "genia", "w0 w1 w2 w3 w4 w5 w6 w7 w8"),
        [(f"w{n}", kind) for n, kind in enumerate(list(KINDS.values())[:5])],
        {},
    ),
    "other tags": ("x<sup>2</sup> y", "genia", "x2 y", [], {}),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule(tmp_path, name):
    title, format, words, entities, counts = RULES[name]
    (record, second, again), check = read(
        write_files(tmp_path, {"a.xml": genia(article(title, "B"), article("C"))}), format
    )
    assert (" ".join(record["tokens"]), spelled(record), check.counts) == (words, entities, counts)
    assert [one["id"] for one in (record, second, again)] == ["MEDLINE:1:0", "MEDLINE:1:1", "MEDLINE:1#2:0"]
    assert (record["doc_id"], record["sent_id"], record["pos"], record["left_tokens"]) == ("MEDLINE:1", 0, [], None)


def test_splits_are_counted_in_sentences(tmp_path, monkeypatch):
    """A document over a border comes in two pieces."""
    assert SPLIT_STARTS == {"train": 0, "validation": 15_023, "test": 16_692}
    monkeypatch.setitem(SPLIT_STARTS, "validation", 3)
    monkeypatch.setitem(SPLIT_STARTS, "test", 9)
    first = f"A  {cons('G#protein_molecule', cons('G#protein_subunit', 'Cd 9') + ' chain')}."
    path = write_files(tmp_path, {"a.xml": genia(article(first, "B"), article("c", "d", "e", name="MEDLINE:2"))})
    assert {name: rows["id"][:] for name, rows in load_nested_ner(path).items()} == {
        "train": ["MEDLINE:1:0", "MEDLINE:1:1", "MEDLINE:2:0"],
        "validation": ["MEDLINE:2:1", "MEDLINE:2:2"],
    }
    splits = load_texts(path)
    assert {split: [(one["doc_id"], one["text"]) for one in texts] for split, texts in splits.items()} == {
        "train": [("MEDLINE:1", "A  Cd 9 chain.\nB"), ("MEDLINE:2", "c")],
        "validation": [("MEDLINE:2", "d e")],
    }
    (document, _) = splits["train"]
    spans = [(document["text"][one["start"] : one["end"]], one["type"]) for one in document["entities"]]
    assert spans == [("Cd 9", "protein"), ("Cd 9 chain", "protein")]


def test_the_whole_corpus_has_the_published_numbers():
    """Articles of training and development, which may not be shipped."""
    if not (path := os.environ.get("TRIAFFINE_GENIA_XML")):
        pytest.skip("needs the path of GENIA's XML in TRIAFFINE_GENIA_XML")
    corpus = load_nested_ner(path)
    names = ("sentences", "entities", "nested_entities", "most_entities", "longest_sentence")
    whole, dev = map(corpus_statistics, (corpus, corpus["validation"]))
    assert [whole[name] for name in names] == [16_692, 50_509, 9_064, 25, 149]
    assert [dev[name] for name in names] == [1_669, 4_367, 799, 18, 131]
    assert whole["spans_above_max_candidates"] == 0
    report = corpus["train"].info.description
    assert "coordinated entities dropped: 934" in report
    assert "further types of a span dropped: 26" in report
    splits = load_texts(path)
    kept = {split: sum(len(one["entities"]) for one in texts) for split, texts in splits.items()}
    assert kept == {"train": 46_142, "validation": 4_367}
    for document in splits["train"] + splits["validation"]:
        assert all(document["text"][one["start"] : one["end"]].strip() for one in document["entities"])
