"""Columns of tags, with and without the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, load_nested_ner, load_texts
from modeling_triaffine.data.formats.tags import STANDARD, decode_tags
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import read, triples, write_files

DANISH = "the B-Person O\nmayor I-Person O\nof I-Person O\nOrsk I-Person B-City\n\nslept O O\n"
GERMAN = (
    "# a.b/c_[1]\n1 the B-Person O\n2 mayor I-Person O\n3 of I-Person O\n4 Orsk I-Person B-City\n\n# x\n1 slept O O\n"
)
FLAT = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n# # B-NP O\nOrsk NNP I-NP B-LOC\n"
NAMED = """# global.columns = ID UPOS FORM NER:1 LEMMA NER:2
# newdoc id = d
# sent_id = s1
1 X Orsk B-A B-O B-C

1 _ is O O O
"""


@pytest.mark.parametrize("form", ["{0}_{1}", "{1}-{0}", "{1}_{0}"])
def test_prefixes_written_otherwise(tmp_path, form):
    tags = [form.format(prefix, kind) for prefix, kind in (("B", "LOC"), ("I", "LOC"), ("B", "a-x_y"))]
    (record,), check = read(write_files(tmp_path, {"a.txt": "".join(f"w {tag}\n" for tag in (*tags, "O"))}))
    assert triples(record) == [(0, 2, "LOC"), (2, 3, "a-x_y")]
    assert not check.counts


def test_a_level_without_entities_in_the_first_lines_is_written_as_the_others(tmp_path):
    records, _ = read(write_files(tmp_path, {"a.conll": "a O B_X\n\n" * 9000 + "b B_Y B_X\n"}))
    assert sorted(triples(records[-1])) == [(0, 1, "X"), (0, 1, "Y")]


def test_ids_and_documents(tmp_path):
    unnamed, named = [("a:0:0", "a:0", 0), ("a:1:0", "a:1", 0)], [("s1", "d", 0), ("d:1", "d", 1)]
    for content, expected in ((DANISH, unnamed), (GERMAN, unnamed), (NAMED.replace(" ", "\t"), named)):
        records, _ = read(write_files(tmp_path, {"a.tsv": content}))
        assert [(one["id"], one["doc_id"], one["sent_id"]) for one in records] == expected
    assert [one["pos"] for one in records] == [["X"], []]
    brackets = "#begin document (x); part 000\nx 0 0 Orsk N * - - - S (A)\n\nx 0 0 He P * - - - S *\n\n#end document\n"
    records, _ = read(write_files(tmp_path, {"a.txt": brackets}))
    assert [(one["id"], one["doc_id"]) for one in records] == [("a:0:0", "a:0"), ("a:0:1", "a:0")]


def test_columns_may_be_named(tmp_path):
    path = write_files(tmp_path, {"a.conll": FLAT})
    assert load_nested_ner(path)["train"]["pos"][:] == [[], []]
    rows = load_nested_ner(path, columns={"tokens": 0, "pos": 1, "entities": [2, 3]})["train"]
    assert rows["pos"][:] == [["NNP", "VBZ"], ["#", "NNP"]]
    assert triples(rows[0]) == [(0, 1, "NP"), (0, 1, "ORG"), (1, 2, "VP")]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({}, r"names \[\]\. Name tokens and entities, optionally pos"),
        ({"tokens": 0, "entities": [1], "lemma": 2}, r"names \['entities', 'lemma', 'tokens'\]"),
        ({"tokens": 0, "entities": []}, "there are 3"),
        ({"tokens": 0, "entities": [0]}, "each is named once"),
        ({"tokens": 0, "entities": [9]}, "there are 3, .*counted from 0.*in a table of sentences, only those behind"),
        ({"tokens": "a", "entities": [-1]}, "there are 3"),
    ],
)
def test_wrong_columns(tmp_path, columns, problem):
    with pytest.raises(ValueError, match=f"`columns` .*{problem}"):
        read(write_files(tmp_path, {"a.conll": DANISH}), "iob2", columns=columns)


@given(
    entities=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["A", "x-y"])), max_size=5),
    scheme=st.sampled_from(["BIIB", "BIES", "BILU", "BMES"]),
)
def test_schemes(entities, scheme):
    first, inside, last, only = scheme
    tags, expected = [], []
    for gap, length, kind in entities:
        tags += ["O"] * gap
        expected.append({"start": len(tags), "end": len(tags) + length, "type": kind})
        prefixes = only if length == 1 else first + inside * (length - 2) + last
        tags += [f"{prefix}-{kind}" for prefix in prefixes]
    check = RecordChecker("")
    assert list(decode_tags(map(STANDARD.read, tags), check)) == expected
    assert not check.counts


ERRORS = {
    "a type among tags": ("a B-LOC\nb TIM\nc O\n", "'TIM' in the last column is none"),
    "a tag among types": ("Orsk LOC\na O\n\n" * 8000 + "b O\nc I-LOC\n", "line 24002: .*'I-LOC'"),
    "zeros in front": ("001 Orsk B-LOC\n002 is O\n", "column 0 has '001', and column 1 has 'Orsk'.*--columns"),
    "points": ("1.1 Orsk B-LOC\n1.2 is O\n", "column 0 has '1.1', and column 1 has 'Orsk'"),
    "ids": ("s1_w1 Orsk B-LOC\ns1_w2 is O\n", "column 0 has 's1_w1', and column 1 has 'Orsk'"),
    "documents": ("doc1 1 Orsk B-LOC\ndoc1 2 is O\n", "column 0 has 'doc1', and column 2 has 'Orsk'"),
    "sentences": ("S:1 Orsk NNP B-LOC\nS:1 is VBZ O\n", "column 0 has 'S:1', and column 1 has 'Orsk'"),
    "names of documents": ("a 1 Orsk B-LOC\na 2 is O\nb 1 He O\n", "column 0 has 'a', and column 2 has 'Orsk'"),
    "no words": ("1 1 0 4 O O\n1 2 5 8 B-LOC O\n", "column 1 has '1', and column 2 has '0'"),
    "words between tags": ("Orsk B-LOC is O\nAna B-PER ran O\n", "column 0 has 'Orsk', and column 2 has 'is'"),
    "tags of the parts of words": ("a O O\nb O^B-LOC O^O\n", "'O\\^O' in the last column is none"),
    "colons in tags": ("Orsk B:LOC\na O\n", "'B:LOC' in the last column is none"),
    "colons in some tags": ("a PER\nb B:LOC\nc I:LOC\nd O\n", "'PER' in the last column is none"),
    "tags without hyphens": ("a BLOC\nb ILOC\nc BPER\nd O\n", "'BLOC' in the last column is none"),
    "slashes in some tags": ("a PER\nb LOC/B\nc LOC/I\nd O\n", "'PER' in the last column is none"),
    "brackets": ("#begin document\nx 0 0 A N * - - - S (X*\n\nx 0 0 B N * - - - S *)\n", r"line 2: .*'\(X\*', do not"),
    "quotes of a table": ('sent_id,word,tag\n1,",O\n1,Orsk,B-LOC\n', "line 2: unclosed quote"),
    "prose": ("We found it in the B-side\n", r"cannot be detected.*docs/corpora\.md"),
    "prose of two words": ("the B-side\nthe I-beam\n", r"cannot be detected.*docs/corpora\.md"),
    "another form": ("#FORMAT=WebAnno TSV 3\n\n1-1 0-4 Orsk B-X\n", r"cannot be detected.*docs/corpora\.md"),
}


@pytest.mark.parametrize(("content", "problem"), ERRORS.values(), ids=ERRORS)
def test_what_nobody_says_is_an_error(tmp_path, content, problem):
    with pytest.raises(CorpusError, match=problem):
        load_nested_ner(write_files(tmp_path, {"a.txt" if "docs/" in problem else "a.conll": content}))


PLUS = """# global.columns = ID FORM MISC NER
# newdoc id = d
# text = In Orsk, dunno.
1\tIn\t_\tO
2\tOrsk\tSpaceAfter=No\tB-LOC
3\t,\t_\tO
4-5\tdunno\tSpaceAfter=No\t_
4\tdo\t_\tO
5\tknow\t_\tO
6\t.\t_\tO
"""


@pytest.mark.parametrize("comment", [True, False])
@pytest.mark.parametrize("name", ["a.conllup", "a.conllu"])
def test_the_text_is_that_of_the_comment_or_of_the_spaces(tmp_path, comment, name):
    content = PLUS if comment else PLUS.replace("# text = In Orsk, dunno.\n", "")
    file = write_files(tmp_path, {name: content + "\n# newpar\n1\tAh\t_\tO\n"})
    (text,) = load_texts(file)["train"]
    assert text["text"] == "In Orsk, dunno.\n\nAh"
    assert [text["text"][one["start"] : one["end"]] for one in text["entities"]] == ["Orsk"]
    assert load_nested_ner(file)["train"]["tokens"][:] == [["In", "Orsk", ",", "do", "know", "."], ["Ah"]]
    again = load_nested_ner(file, word_splitter=word_splitter("whitespace"))["train"]
    assert again["tokens"][:] == [["In", "Orsk,", "dunno."], ["Ah"]]
