"""Columns of tags, with and without the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, load_nested_ner, load_texts
from modeling_triaffine.data.formats.tags import STANDARD, decode_tags
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import read, spelled, triples, write_files

DANISH = "the B-Person O\nmayor I-Person O\nof I-Person O\nOrsk I-Person B-City\n\nslept O O\n"
GERMAN = (
    "# a.b/c_[1]\n1 the B-Person O\n2 mayor I-Person O\n3 of I-Person O\n4 Orsk I-Person B-City\n\n# x\n1 slept O O\n"
)
FLAT = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- -X- O

# # B-NP O
Orsk NNP I-NP B-LOC
"""
NAMED = """# global.columns = ID UPOS FORM NER:1 LEMMA NER:2
# newdoc id = d
# sent_id = s1
1 X Orsk B-A B-O B-C

1 _ is O O O
"""
NOTE = "entities of tags without B and I, with adjacent words of one type read as one entity"
BEGINS = "tags {}- that begin an entity read as {}-"


def one_word_each(tags):
    return "".join(f"w {tag}\n" for tag in tags)


# Name → columns, here separated by spaces, the words of each sentence, its entities, and what is counted.
COLUMNS = {
    "levels": (DANISH, ["the mayor of Orsk", "slept"], [[(0, 4, "Person"), (3, 4, "City")], []], {}),
    "numbers of words": (GERMAN, ["the mayor of Orsk", "slept"], [[(0, 4, "Person"), (3, 4, "City")], []], {}),
    "numbers from 0": ("0 Orsk B-A\n1 is O\n\n0 He O\n1 ran O\n", ["Orsk is", "He ran"], [[(0, 1, "A")], []], {}),
    "numbers alone": ("1 B-A\n2 O\n", ["1 2"], [[(0, 1, "A")]], {}),
    "CoNLL-2003": (
        FLAT,
        ["EU rejects", "# Orsk"],
        [[(0, 1, "ORG")], [(1, 2, "LOC")]],
        {"values of the columns 1, 2 ignored": 4},
    ),
    "types that are also those of chunks": (
        "a O B-AP\nb B-PER O\nc B-NP B-PP\n",
        ["a b c"],
        [[(0, 1, "AP"), (1, 2, "PER"), (2, 3, "NP"), (2, 3, "PP")]],
        {},
    ),
    "named columns": (
        NAMED,
        ["Orsk", "is"],
        [[(0, 1, "A"), (0, 1, "C")], []],
        {"values of the columns 4 ignored": 2},
    ),
    "multi-word tokens": ("# global.columns = ID FORM NER\n1-2 du _\n1 de O\n2 le O\n2.1 x _\n", ["de le"], [[]], {}),
    "columns behind the tags": (
        "1 a B-X - c\n2-3 b O - c\n",
        ["a"],
        [[(0, 1, "X")]],
        {"values of the columns 3, 4 ignored": 1},
    ),
    "titles of documents": ("-DOCSTART- (1 News)\na B-X\n\n-DOCSTART- (2)\nb O\n", ["a", "b"], [[(0, 1, "X")], []], {}),
    "not quite a document": ("-DOCSTART-s O\na B-X\n", ["-DOCSTART-s a"], [[(1, 2, "X")]], {}),
    "neighbours": (
        one_word_each(["B-A", "B-A", "I-A", "B-B", "I-A", "O", "I-x-y"]),
        ["w w w w w w w"],
        [[(0, 1, "A"), (1, 3, "A"), (3, 4, "B"), (4, 5, "A"), (6, 7, "x-y")]],
        {BEGINS.format("I", "B"): 2},
    ),
    "tags that continue nothing": (
        one_word_each(["E-A", "M-A", "E-A", "E-A", "S-A", "I-A", "E-B"]),
        ["w w w w w w w"],
        [[(0, 1, "A"), (1, 3, "A"), (3, 4, "A"), (4, 5, "A"), (5, 6, "A"), (6, 7, "B")]],
        {BEGINS.format("E", "S"): 3, BEGINS.format("I", "B"): 1, BEGINS.format("M", "B"): 1},
    ),
    "types O": (
        "a B-X\nb I-O\nc B-O\nd B-X\n",
        ["a b c d"],
        [[(0, 1, "X"), (3, 4, "X")]],
        {"tags I-O read as O": 1, "tags B-O read as O": 1},
    ),
    "no types": (
        one_word_each("BIOBBE"),
        ["w w w w w w"],
        [[(0, 2, "entity"), (3, 4, "entity"), (4, 6, "entity")]],
        {"entities of tags without types, read as 'entity'": 3},
    ),
    "no prefixes": (
        "a LOC\nb LOC\nc O\nd person-x\ne LOC\n\n# LOC\n# not\nd O\n",
        ["a b c d e", "# # d"],
        [[(0, 2, "LOC"), (3, 4, "person-x"), (4, 5, "LOC")], [(0, 1, "LOC"), (1, 2, "not")]],
        {NOTE: 5},
    ),
    "no prefixes, in several columns": (
        "a NN LOC O\nb VB O O\nc NN ORG LOC\nd X O O\n",
        ["a b c d"],
        [[(0, 1, "LOC"), (2, 3, "ORG"), (2, 3, "LOC")]],
        {NOTE: 3, "values of the columns 1 ignored": 4},
    ),
    "an underscore, then I alone": ("a B_X\nb I\nc O\n", ["a b c"], [[(0, 2, "X")]], {}),
    "lines without a token": (
        "Token Tag\na B-X\n\0O\n\u200b\nb O\n\nToken O\n",
        ["a b", "Token"],
        [[(0, 1, "X")], []],
        {"lines without a token dropped": 2, "lines of column names left out": 1},
    ),
}


@pytest.mark.parametrize(("content", "words", "entities", "counts"), COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("change", ["{}", "\ufeff{}"], ids=["plain", "mark"])
def test_columns(tmp_path, content, words, entities, counts, change):
    content = change.format(content.replace(" ", "\t").replace("\0", "\t"))
    records, check = read(write_files(tmp_path, {"a.tsv": content}))
    assert [" ".join(record["tokens"]) for record in records] == words
    assert [triples(record) for record in records] == entities
    assert check.counts == counts


@pytest.mark.parametrize("form", ["{0}_{1}", "{2}-{1}", "{2}_{1}", "{1}-{0}", "{1}_{0}", "{1}-{2}"])
@pytest.mark.parametrize("name", ["a.conll", "a.txt"])
def test_prefixes_written_otherwise(tmp_path, form, name):
    tags = [form.format(prefix, kind, prefix.lower()) for prefix, kind in (("B", "LOC"), ("I", "LOC"), ("B", "a-x_y"))]
    (record,), check = read(write_files(tmp_path, {name: one_word_each([*tags, "O"])}))
    assert triples(record) == [(0, 2, "LOC"), (2, 3, "a-x_y")]
    assert not check.counts


@pytest.mark.parametrize("between", [" ", "|", "|O|"])
def test_words_with_a_tag_for_each_entity(tmp_path, between):
    """As in Wojood, and in corpora whose tags are sorted by label; the outer X has an X inside."""
    lines = ["in O", "a B-X", "b I-X B-Y", "c B-X I-X I-Y", "d I-X I-X", "e I-X B-Y", "", "# I-Z", ""]
    lines = [line.replace(" ", between).replace(between, " ", 1) for line in lines]
    (record, last), check = read(write_files(tmp_path, {"a.conll": "\n".join(lines)}))
    assert record["tokens"] == ["in", "a", "b", "c", "d", "e"]
    assert triples(record) == [(1, 6, "X"), (2, 4, "Y"), (3, 5, "X"), (5, 6, "Y")]
    assert (last["tokens"], triples(last)) == (["#"], [(0, 1, "Z")])
    assert check.counts == {BEGINS.format("I", "B"): 1}


def test_ids_and_documents(tmp_path):
    for content in (DANISH, GERMAN):
        records, _ = read(write_files(tmp_path, {"a.tsv": content}))
        assert [(one["id"], one["doc_id"], one["sent_id"]) for one in records] == [
            ("a:0:0", "a:0", 0),
            ("a:1:0", "a:1", 0),
        ]
    records, _ = read(write_files(tmp_path, {"a.tsv": NAMED.replace(" ", "\t")}))
    assert [(one["id"], one["doc_id"], one["sent_id"]) for one in records] == [("s1", "d", 0), ("d:1", "d", 1)]
    assert [one["pos"] for one in records] == [["X"], []]


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
        ({"tokens": 0, "entities": [9]}, "there are 3, .*counted from 0"),
        ({"tokens": "a", "entities": [-1]}, "there are 3"),
    ],
)
def test_wrong_columns(tmp_path, columns, problem):
    with pytest.raises(ValueError, match=f"`columns` .*{problem}"):
        read(write_files(tmp_path, {"a.conll": DANISH}), columns=columns)


@pytest.mark.parametrize("space", ["\u3000", "\xa0", "\n\n\u3000"])
def test_a_first_word_may_be_white_space(tmp_path, space):
    """As the indent of a paragraph in corpora of Chinese characters."""
    path = write_files(tmp_path, {"a.tsv": f"{space}\tO\nOrsk\tB-LOC\n"})
    assert load_nested_ner(path)["train"]["tokens"][:] == [[space.strip("\n"), "Orsk"]]


HIPE = """TOKEN NE-COARSE-LIT NE-COARSE-METO NE-FINE-LIT NE-FINE-METO NE-FINE-COMP NE-NESTED NEL-LIT NEL-METO MISC
# hipe2022:document_id = EXP-1888
FAITS O O O O O O _ _ EndOfLine
M B-pers O B-pers.ind O B-comp.title O Q65 _ NoSpaceAfter
. I-pers O I-pers.ind O I-comp.title O Q65 _ EndOfLine|EndOfSentence
# segment_iiif_link = _
de I-pers O I-pers.ind O O O Q65 _ _
Hambourg I-pers O I-pers.ind O O B-loc.adm Q65 _ _
"""


@pytest.mark.parametrize("without", [False, True])
def test_columns_of_hipe(tmp_path, without):
    """With comments between the words, and as of NewsEye, without a value in some columns."""
    lines = [line if line.startswith("#") else line.replace(" ", "\t") for line in HIPE.splitlines()]
    if without:
        rows = [line.split("\t") for line in lines]
        lines = [
            "\t".join("_" if column in (2, 4, 5) and row[0] != "TOKEN" else cell for column, cell in enumerate(row))
            for row in rows
        ]
    path = write_files(tmp_path, {"a.tsv": "\n".join(lines)})
    (record,), check = read(path)
    types = {"pers", "pers.ind", "loc.adm"} | (set() if without else {"comp.title"})
    assert {kind for _, kind in spelled(record)} == types
    assert check.counts["lines without a token dropped"] == check.counts["lines of column names left out"] == 1
    (record,), _ = read(path, columns={"tokens": 0, "entities": [1, 6]})
    assert triples(record) == [(1, 5, "pers"), (4, 5, "loc.adm")]


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
    "a type among tags": ("a B-LOC\nb TIM\nc O\n", "'TIM' in the last column is not a tag as the others"),
    "a tag among types": ("Orsk LOC\na O\n\n" * 8000 + "b O\nc I-LOC\n", "line 24002: .*'I-LOC'"),
    "zeros in front": ("001 Orsk B-LOC\n002 is O\n", "column 0 has '001', and column 1 'Orsk'.*--columns"),
    "points": ("1.1 Orsk B-LOC\n1.2 is O\n", "column 0 has '1.1', and column 1 'Orsk'"),
    "ids": ("s1_w1 Orsk B-LOC\ns1_w2 is O\n", "column 0 has 's1_w1', and column 1 'Orsk'"),
    "documents": ("doc1 1 Orsk B-LOC\ndoc1 2 is O\n", "column 0 has 'doc1', and column 2 'Orsk'"),
    "sentences": ("Sentence:1 Orsk NNP B-LOC\nSentence:1 is VBZ O\n", "column 0 has 'Sentence:1', and column 1 'Orsk'"),
    "prose": ("We found it in the B-side\n", r"cannot be detected.*docs/corpora\.md"),
    "another form": ("#FORMAT=WebAnno TSV 3\n\n1-1 0-4 Orsk B-X\n", r"cannot be detected.*docs/corpora\.md"),
}


@pytest.mark.parametrize(("content", "problem"), ERRORS.values(), ids=ERRORS)
def test_what_nobody_says_is_an_error(tmp_path, content, problem):
    with pytest.raises(CorpusError, match=problem):
        load_nested_ner(write_files(tmp_path, {"a.txt" if "docs/" in problem else "a.conll": content}))


OTHER_TOOLS = {
    "blanks around tags": ("Orsk\t B-LOC\nis\t O\n", [[("Orsk", "LOC")]]),
    "a table of sentences": (
        'Sentence #,Word,POS,Tag\nSentence: 1,Orsk,NNP,B-geo\n,",",",",O\nSentence: 2,He,PRP,O\n,ran,VB,O\n',
        [[("Orsk", "geo")], []],
    ),
    "brackets of CoNLL-2012": (
        "#begin document (a); part 000\na 0 0 Orsk NNP * - - - S (GPE) (ARG* -\na 0 1 is V * - - - S * * -\n\n"
        "a 0 0 The NNP * - - - S (ORG* -\na 0 1 EU NNP * - - - S (GPE)) -\n\n#end document\n",
        [[("Orsk", "GPE")], [("The EU", "ORG"), ("EU", "GPE")]],
    ),
}


@pytest.mark.parametrize(("content", "entities"), OTHER_TOOLS.values(), ids=OTHER_TOOLS)
def test_columns_of_other_tools(tmp_path, content, entities):
    records, _ = read(write_files(tmp_path, {"a.txt": content}))
    assert [spelled(record) for record in records] == entities


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
    file = write_files(tmp_path, {name: content + "\n1\tAh\t_\tO\n"})
    (text,) = load_texts(file)["train"]
    assert text["text"] == "In Orsk, dunno. Ah"
    assert [text["text"][one["start"] : one["end"]] for one in text["entities"]] == ["Orsk"]
    assert load_nested_ner(file)["train"]["tokens"][:] == [["In", "Orsk", ",", "do", "know", "."], ["Ah"]]
    again = load_nested_ner(file, word_splitter=word_splitter("whitespace"))["train"]
    assert again["tokens"][:] == [["In", "Orsk,", "dunno."], ["Ah"]]
    file = write_files(tmp_path, {"b.conllup": content.replace("5\tknow", "_\tknow")})
    with pytest.raises(CorpusError, match=r"column 0 is '_', which does not number a word"):
        load_nested_ner(file)
