"""Columns of tags, with and without the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, load_nested_ner, load_texts
from modeling_triaffine.data.formats.tags import STANDARD, decode_tags
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import read, spelled, triples, write_files
from tests.helpers.format_cases import SAMPLES

NESTED = [("the mayor of Orsk", "Person"), ("Orsk", "City")]


# As in DaN+, GermEval 2014 and CoNLL-2003.
DANISH = """the B-Person O
mayor I-Person O
of I-Person O
Orsk I-Person B-City

slept O O
""".replace(" ", "\t")


GERMAN = """# http://a.b/c_[2009-10-17]
1 the B-Person O
2 mayor I-Person O
3 of I-Person O
4 Orsk I-Person B-City

# x
1 slept O O
""".replace(" ", "\t")


FLAT = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- -X- O

# # B-NP O
Orsk NNP I-NP B-LOC
"""


NAMED = """# global.columns = ID UPOS FORM NER:1 LEMMA NER:2
# newdoc id = d 1
# sent_id = s1
1\tX\tOrsk\tB-A\tB-O\tB-C

1\t_\tis\tO\tO\tO
"""


class TestIob2:
    @pytest.mark.parametrize(
        "content", [DANISH, GERMAN, DANISH.replace("\n", "\r\n"), "\ufeff" + DANISH, DANISH.replace("\t", "  ")]
    )
    def test_a_column_is_a_level(self, tmp_path, content):
        records, check = read(write_files(tmp_path, {"a.tsv": content}))
        assert [record["tokens"] for record in records] == [["the", "mayor", "of", "Orsk"], ["slept"]]
        assert [spelled(record) for record in records] == [NESTED, []]
        assert [(record["id"], record["doc_id"], record["sent_id"]) for record in records] == [
            ("a:0:0", "a:0", 0),
            ("a:1:0", "a:1", 0),
        ]
        assert not check.report()

    @pytest.mark.parametrize("content", [FLAT, FLAT.replace("-NP", "-NC").replace("-VP", "-VC")])  # English, German
    def test_chunks_are_no_entities_and_other_columns_are_ignored(self, tmp_path, content):
        records, check = read(write_files(tmp_path, {"a.conll": content}))
        assert [(record["doc_id"], record["tokens"], spelled(record)) for record in records] == [
            ("a:0", ["EU", "rejects"], [("EU", "ORG")]),
            ("a:1", ["#", "Orsk"], [("Orsk", "LOC")]),
        ]
        assert "values of the columns 1, 2 ignored: 4" in check.report()

    def test_types_that_are_also_those_of_chunks_are_entities_without_noun_chunks(self, tmp_path):
        (record,), check = read(write_files(tmp_path, {"a.conll": "a O B-AP\nb B-PER O\nc B-NP B-PP\n"}))
        assert triples(record) == [(0, 1, "AP"), (1, 2, "PER"), (2, 3, "NP"), (2, 3, "PP")]
        assert not check.counts

    def test_columns_may_be_named(self, tmp_path):
        file = write_files(tmp_path, {"a.conll": FLAT})
        records, check = read(file, columns={"tokens": 0, "pos": 1, "entities": [2, 3]})
        assert [record["pos"] for record in records] == [["NNP", "VBZ"], ["#", "NNP"]]
        assert triples(records[0]) == [(0, 1, "NP"), (0, 1, "ORG"), (1, 2, "VP")]
        assert not check.report()
        records, _ = read(file, columns={"tokens": 1, "entities": 3})
        assert records[0]["tokens"] == ["NNP", "VBZ"]

    def test_columns_may_be_named_in_the_file(self, tmp_path):
        records, check = read(write_files(tmp_path, {"a.conll": NAMED}))
        assert [(record["id"], record["doc_id"], record["sent_id"]) for record in records] == [
            ("s1", "d 1", 0),
            ("d 1:1", "d 1", 1),
        ]
        assert [record["pos"] for record in records] == [["X"], []]
        assert [triples(record) for record in records] == [[(0, 1, "A"), (0, 1, "C")], []]
        assert check.counts == {"values of the columns 4 ignored": 2}

    @pytest.mark.parametrize(
        ("content", "sentences"),
        [
            ("Orsk\tB-City \n#slept\tO \n", [["Orsk", "#slept"]]),
            ("-DOCSTART- (1 News)\nOrsk\tB-City\n\n-DOCSTART- (2 News)\nslept\tO\n", [["Orsk"], ["slept"]]),
            ("# global.columns = ID FORM NER\n1-2\tdu\t_\n1\tde\tO\n2\tle\tO\n2.1\tx\t_\n", [["de", "le"]]),
            ("# sent_id = 1\n1\tOrsk\tB-City\t-\tann\n2-3\tx\tO\t-\tann\n", [["Orsk"]]),
            ("-DOCSTART-s\tO\nOrsk\tB-City\n", [["-DOCSTART-s", "Orsk"]]),
            ("1\tB-A\n2\tO\n", [["1", "2"]]),
        ],
        ids=[
            "spaces at the end",
            "titles of documents",
            "words of named columns",
            "columns behind the tags",
            "not quite a document",
            "numbers without another column",
        ],
    )
    def test_lines_of_other_corpora(self, tmp_path, content, sentences):
        records, _ = read(write_files(tmp_path, {"a.conll": content}))
        assert [record["tokens"] for record in records] == sentences
        assert {kind for record in records for _, kind in spelled(record)} <= {"City", "A"}

    @pytest.mark.parametrize("between", [" ", "|", "|O|"])
    def test_words_with_a_tag_for_each_entity(self, tmp_path, between):
        """As in Wojood, and in corpora whose tags are sorted by label; the outer X has an X inside."""
        lines = ["in O", "a B-X", "b I-X B-Y", "c B-X I-X I-Y", "d I-X I-X", "e I-X B-Y", "", "# I-Z", ""]
        lines = [line.replace(" ", between).replace(between, " ", 1) for line in lines]
        (record, last), check = read(write_files(tmp_path, {"a.conll": "\n".join(lines)}))
        assert record["tokens"] == ["in", "a", "b", "c", "d", "e"]
        assert triples(record) == [(1, 6, "X"), (2, 4, "Y"), (3, 5, "X"), (5, 6, "Y")]
        assert (last["tokens"], triples(last)) == (["#"], [(0, 1, "Z")])
        assert check.counts == {"tags I- that begin an entity read as B-": 1}

    def test_words_with_a_tag_for_each_entity_need_one(self, tmp_path):
        file = write_files(tmp_path, {"a.conll": "a B-X\nb I-X B-Y\n" + "c O\n" * 40_000 + "d\n"})
        with pytest.raises(CorpusError, match=r"line 40003: there are 1 columns, 2 or more in the lines before"):
            read(file)

    def test_tags_of_neighbours(self, tmp_path):
        tags = ["B-A", "B-A", "I-A", "B-B", "I-A", "O", "I-x-y"]
        (record,), check = read(write_files(tmp_path, {"a.conll": "".join(f"w {tag}\n" for tag in tags)}))
        assert triples(record) == [(0, 1, "A"), (1, 3, "A"), (3, 4, "B"), (4, 5, "A"), (6, 7, "x-y")]
        assert "tags I- that begin an entity read as B-: 2" in check.report()

    @pytest.mark.parametrize(
        "write",
        [
            lambda prefix, kind: f"{prefix}_{kind}",
            lambda prefix, kind: f"{prefix.lower()}-{kind}",
            lambda prefix, kind: f"{prefix.lower()}_{kind}",
            lambda prefix, kind: f"{kind}-{prefix}",
            lambda prefix, kind: f"{kind}_{prefix}",
            lambda prefix, kind: f"{kind}-{prefix.lower()}",
        ],
        ids=["B_LOC", "b-LOC", "b_LOC", "LOC-B", "LOC_B", "LOC-b"],
    )
    @pytest.mark.parametrize("name", ["a.conll", "a.txt"])
    def test_prefixes_written_otherwise(self, tmp_path, write, name):
        tags = [write("B", "LOC"), write("I", "LOC"), write("B", "LOC"), "O", write("B", "art-x_y")]
        (record,), check = read(write_files(tmp_path, {name: "".join(f"w {tag}\n" for tag in tags)}))
        assert triples(record) == [(0, 2, "LOC"), (2, 3, "LOC"), (4, 5, "art-x_y")]
        assert not check.counts

    def test_prefixes_without_types(self, tmp_path):
        (record,), check = read(write_files(tmp_path, {"a.conll": "".join(f"w {tag}\n" for tag in "BIOBBE")}))
        assert triples(record) == [(0, 2, "entity"), (3, 4, "entity"), (4, 6, "entity")]
        assert check.counts == {"entities of tags without types, read as 'entity'": 3}

    @pytest.mark.parametrize("name", ["a.conll", "a.txt"])
    @pytest.mark.parametrize("between", ["\t", " "])
    def test_types_without_prefixes(self, tmp_path, name, between):
        """As in Few-NERD, KIND and the output of Stanford NER."""
        lines = ["Orsk LOC", "Omsk LOC", "a O", "b person-actor", "c LOC", "", "# LOC", "# not", "d O"]
        content = "\n".join(lines).replace(" ", between)
        records, check = read(write_files(tmp_path, {name: content + "\n"}))
        assert [triples(record) for record in records] == [
            [(0, 2, "LOC"), (3, 4, "person-actor"), (4, 5, "LOC")],
            [(0, 1, "LOC"), (1, 2, "not")],
        ]
        note = "entities of tags without B and I, with adjacent words of one type read as one entity"
        assert check.counts == {note: 5}

    def test_types_without_prefixes_in_several_columns(self, tmp_path):
        """A column before them without O, such as parts of speech, has no types."""
        (record,), check = read(write_files(tmp_path, {"a.conll": "a NN LOC O\nb VB O O\nc NN ORG LOC\nd X O O\n"}))
        assert triples(record) == [(0, 1, "LOC"), (2, 3, "ORG"), (2, 3, "LOC")]
        assert check.counts["values of the columns 1 ignored"] == 4

    def test_tags_of_two_schemes_are_named(self, tmp_path):
        """The value that is wrong, not those that are right."""
        for wrong in ("LOC", "TIM"):
            with pytest.raises(
                CorpusError, match=f"'{wrong}' in the last column is not a tag as the others. A tag is O"
            ):
                read(write_files(tmp_path, {"a.conll": f"a B-LOC\nb {wrong}\nc O\n"}))

    def test_a_tag_with_a_prefix_is_no_type(self, tmp_path):
        """Of joined files, the first of which decides, since what follows was not read for that."""
        lines = ["Orsk LOC", "a O", ""] * 8_000
        with pytest.raises(CorpusError, match=r"line 24002: .*'I-LOC'"):
            read(write_files(tmp_path, {"a.conll": "\n".join([*lines, "b O", "c I-LOC", ""])}))

    def test_outside_is_no_type(self, tmp_path):
        (record,), check = read(write_files(tmp_path, {"a.conll": "a B-LOC\nb I-O\nc B-O\nd B-LOC\n"}))
        assert triples(record) == [(0, 1, "LOC"), (3, 4, "LOC")]
        assert check.counts == {"tags I-O read as O": 1, "tags B-O read as O": 1}

    @pytest.mark.parametrize("tag", ["B-LOC", "LOC"])
    def test_lines_without_a_token_and_of_column_names(self, tmp_path, tag):
        lines = ["Token\tTag", f"Orsk\t{tag}", "\tO", "\u200b", "a\tO", "", "Token\tO", "", "\ufeff"]
        records, check = read(write_files(tmp_path, {"a.tsv": "\n".join(lines)}))
        assert [record["tokens"] for record in records] == [["Orsk", "a"], ["Token"]]
        assert check.counts["lines without a token dropped"] == 3
        assert check.counts["lines of column names left out"] == 1

    @pytest.mark.parametrize("space", ["\u3000", "\xa0", "\n\n\u3000"])
    def test_a_first_word_may_be_white_space(self, tmp_path, space):
        """As the indent of a paragraph in corpora of Chinese characters."""
        path = write_files(tmp_path, {"a.tsv": f"{space}\tO\nOrsk\tB-LOC\n"})
        assert load_nested_ner(path)["train"]["tokens"][:] == [[space.strip("\n"), "Orsk"]]

    @pytest.mark.parametrize("name", ["Token", "text"])
    def test_a_first_word_that_names_tokens_is_a_word_before_a_tag(self, tmp_path, name):
        for tag, other in (("O", "B-LOC"), ("S-LOC", "O"), ("LOC-B", "O"), ("LOC", "O")):
            lines = [f"{name} {tag}", f"slept {other}", f"Orsk {tag}"]
            (record,), check = read(write_files(tmp_path, {"a.conll": "\n".join(lines)}))
            assert record["tokens"] == [name, "slept", "Orsk"]
            assert "lines of column names left out" not in check.counts

    HIPE = """TOKEN NE-COARSE-LIT NE-COARSE-METO NE-FINE-LIT NE-FINE-METO NE-FINE-COMP NE-NESTED NEL-LIT NEL-METO MISC
# hipe2022:document_id = EXP-1888
# hipe2022:applicable_columns = TOKEN NE-COARSE-LIT NE-COARSE-METO NE-FINE-LIT NE-FINE-METO NE-FINE-COMP NE-NESTED
FAITS O O O O O O _ _ EndOfLine
M B-pers O B-pers.ind O B-comp.title O Q65 _ NoSpaceAfter
. I-pers O I-pers.ind O I-comp.title O Q65 _ EndOfLine|EndOfSentence
# segment_iiif_link = _
de I-pers O I-pers.ind O O O Q65 _ _
Hambourg I-pers O I-pers.ind O O B-loc.adm Q65 _ _

# hipe2022:document_id = EXP-1908
Aarau B-loc B-org O O O O NIL _ _
"""

    @pytest.fixture
    def hipe(self):
        lines = self.HIPE.splitlines()
        return "\n".join(line if line.startswith("#") else line.replace(" ", "\t") for line in lines) + "\n"

    def test_columns_of_hipe(self, tmp_path, hipe):
        """With comments between the words, and as in HIPE 2022, where some data sets have no tags in some columns."""
        path = write_files(tmp_path, {"a.tsv": hipe})
        (first, second), check = read(path, columns={"tokens": 0, "entities": [1, 6]})
        assert first["tokens"] == ["FAITS", "M", ".", "de", "Hambourg"]
        assert triples(first) == [(1, 5, "pers"), (4, 5, "loc.adm")]
        assert triples(second) == [(0, 1, "loc")]
        assert check.counts == {
            "lines of column names left out": 1,
            "lines without a token dropped": 1,
            "values of the columns 2, 3, 4, 5, 7, 8, 9 ignored": 6,
        }
        (first, second), check = read(path)
        assert {kind for _, kind in spelled(first)} == {"pers", "pers.ind", "comp.title", "loc.adm"}
        assert spelled(second) == [("Aarau", "loc"), ("Aarau", "org")]
        assert check.counts["values of the columns 7, 8, 9 ignored"] == 6

    @pytest.mark.parametrize("last", ["_", ""])
    def test_columns_of_hipe_without_a_value(self, tmp_path, hipe, last):
        """As of NewsEye; in TopRes19th, the last cell is empty."""
        rows = [line.split("\t") for line in hipe.splitlines()]
        for row in rows[1:]:
            if len(row) > 1:
                row[2] = row[4] = row[5] = "_"
                row[9] = row[9].replace("_", last)
        (first, second), check = read(write_files(tmp_path, {"a.tsv": "\n".join(map("\t".join, rows))}))
        assert triples(first) == [(1, 5, "pers"), (1, 5, "pers.ind"), (4, 5, "loc.adm")]
        assert triples(second) == [(0, 1, "loc")]
        assert check.counts["values of the columns 2, 4, 5, 7, 8, 9 ignored"] == 6

    def test_lines_without_a_token_before_spaces(self, tmp_path):
        records, check = read(write_files(tmp_path, {"a.conll": "Orsk B-LOC\n O\na O\n"}))
        assert [record["tokens"] for record in records] == [["Orsk", "a"]]
        assert check.counts == {"lines without a token dropped": 1}

    @given(
        entities=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["A", "x-y"])), max_size=5),
        scheme=st.sampled_from(["BIIB", "BIES", "BILU", "BMES"]),
    )
    def test_schemes(self, entities, scheme):
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

    def test_tags_that_continue_nothing_are_counted(self, tmp_path):
        tags = ["E-A", "M-A", "E-A", "E-A", "S-A", "I-A", "E-B"]
        (record,), check = read(write_files(tmp_path, {"a.conll": "".join(f"w {tag}\n" for tag in tags)}))
        assert triples(record) == [(0, 1, "A"), (1, 3, "A"), (3, 4, "A"), (4, 5, "A"), (5, 6, "A"), (6, 7, "B")]
        assert check.counts == {
            "tags E- that begin an entity read as S-": 3,
            "tags I- that begin an entity read as B-": 1,
            "tags M- that begin an entity read as B-": 1,
        }

    @pytest.mark.parametrize(
        ("columns", "problem"),
        [
            ({}, r"names \[\]\. Name tokens and entities, optionally pos"),
            ({"tokens": 0}, r"names \['tokens'\]\."),
            ({"tokens": 0, "entities": [1], "lemma": 2}, r"names \['entities', 'lemma', 'tokens'\]"),
            ({"tokens": 0, "entities": []}, "there are 3"),
            ({"tokens": 0, "entities": [0]}, "distinct"),
            ({"tokens": 0, "entities": [9]}, "there are 3. Name them as in {'tokens': 0"),
            ({"tokens": 0, "entities": [-1]}, "indices from 0"),
            ({"tokens": "a", "entities": [1]}, "'tokens': 'a'"),
        ],
    )
    def test_wrong_columns(self, tmp_path, columns, problem):
        with pytest.raises(ValueError, match=f"`columns` .*{problem}"):
            read(write_files(tmp_path, {"a.conll": DANISH}), columns=columns)


NUMBERED = {
    "numbers from 0": ("0 Orsk B-LOC\n1 is O\n\n0 He O\n1 slept O\n", [["Orsk", "is"], ["He", "slept"]]),
    "a number alone": ("0 Orsk B-LOC\n\n0 He O\n", [["Orsk"], ["He"]]),
    "zeros in front": ("001 Orsk B-LOC\n002 is O\n", None),
    "tens": ("10 Orsk B-LOC\n20 is O\n", None),
    "points": ("1.1 Orsk B-LOC\n1.2 is O\n", None),
    "ids": ("s1_w1 Orsk B-LOC\ns1_w2 is O\n", None),
    "documents": ("doc1 1 Orsk B-LOC\ndoc1 2 is O\n", None),
    "sentences": ("Sentence:\x001 Orsk NNP B-LOC\nSentence:\x001 is VBZ O\n", None),
    "two words": ("Orsk NNP B-LOC\nis VBZ O\n", [["Orsk", "is"]]),
}


@pytest.mark.parametrize(("content", "tokens"), NUMBERED.values(), ids=NUMBERED)
def test_a_first_column_that_numbers_is_not_that_of_words(tmp_path, content, tokens):
    path = write_files(tmp_path, {"z.conll": content.replace(" ", "\t").replace("\0", " ")})
    if tokens is None:
        with pytest.raises(
            CorpusError, match=r"which column has the words: column \d has .*, and column \d .*--columns"
        ):
            read(path)
    else:
        assert [record["tokens"] for record in read(path)[0]] == tokens
    assert [
        *map(
            len, load_nested_ner(path, columns={"tokens": 1, "entities": [2 + content.count("NNP")]})["train"]["tokens"]
        )
    ]


OTHER_WAYS = {
    "blanks around tags": ("Orsk\t B-LOC\nis\t O\n", [("Orsk", "LOC")]),
    "an underscore, then I alone": ("Orsk\tB_LOC\nOblast\tI\nis\tO\n", [("Orsk Oblast", "LOC")]),
    "a table of sentences": (
        'Sentence #,Word,POS,Tag\nSentence: 1,Orsk,NNP,B-geo\n,",",",",O\nSentence: 2,He,PRP,O\n,ran,VB,O\n',
        [("Orsk", "geo")],
    ),
    "brackets of CoNLL-2012": (
        "#begin document (a); part 000\n"
        + "".join(f"a 0 {n} {w} NNP * - - - S {ne} (ARG* -\n" for n, w, ne in ((0, "Orsk", "(GPE)"), (1, "is", "*")))
        + "\n"
        + "".join(f"a 0 {n} {w} NNP * - - - S {ne} -\n" for n, w, ne in ((0, "The", "(ORG*"), (1, "EU", "(GPE))")))
        + "\n#end document\n",
        [("Orsk", "GPE"), ("The EU", "ORG"), ("EU", "GPE")],
    ),
}


@pytest.mark.parametrize(("content", "entities"), OTHER_WAYS.values(), ids=OTHER_WAYS)
def test_columns_of_other_tools(tmp_path, content, entities):
    records, _ = read(write_files(tmp_path, {"a.txt": content}))
    assert [one for record in records for one in spelled(record)] == entities
    assert len(records) == (1 if "Orsk\t" in content else 2)


@pytest.mark.parametrize("content", ["We found it in the B-side\n", "#FORMAT=WebAnno TSV 3\n\n1-1\t0-4\tOrsk\tB-X\n"])
def test_what_is_not_taken_for_columns(tmp_path, content):
    with pytest.raises(CorpusError, match=r"cannot be detected.*docs/corpora\.md"):
        load_nested_ner(write_files(tmp_path, {"x.txt": content}))


class TestColumnsWithText:
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
    @pytest.mark.parametrize("name", ["a.conllup", "a.conllu", "a.conll"])
    def test_the_text_is_that_of_the_comment_or_of_the_spaces(self, tmp_path, comment, name):
        content = self.PLUS if comment else self.PLUS.replace("# text = In Orsk, dunno.\n", "")
        file = write_files(tmp_path, {name: content + "\n1\tAh\t_\tO\n"})
        (text,) = load_texts(file)["train"]
        assert text["text"] == "In Orsk, dunno. Ah"
        assert [text["text"][one["start"] : one["end"]] for one in text["entities"]] == ["Orsk"]
        assert load_nested_ner(file)["train"]["tokens"][:] == [["In", "Orsk", ",", "do", "know", "."], ["Ah"]]
        again = load_nested_ner(file, word_splitter=word_splitter("whitespace"))["train"]
        assert again["tokens"][:] == [["In", "Orsk,", "dunno."], ["Ah"]]

    def test_an_id_that_is_no_number_is_an_error(self, tmp_path):
        file = write_files(tmp_path, {"a.conllup": self.PLUS.replace("5\tknow", "_\tknow")})
        with pytest.raises(CorpusError, match=r"column 0 is '_', which does not number a word"):
            load_nested_ner(file)

    def test_a_file_of_conllu_plus_without_tags_names_the_end_of_its_line(self, tmp_path):
        line = "\t".join(["1", "Orsk", *"_" * 60, "1:PER"])
        with pytest.raises(CorpusError, match=r"1:PER', with 63 columns, .*--format iob2"):
            read(write_files(tmp_path, {"a.conllu": line + "\n"}))


class TestLoading:
    def test_columns_are_an_option_and_part_of_the_cache_key(self, tmp_path):
        file = write_files(tmp_path, {"a.conll": FLAT})
        load = {"cache_dir": tmp_path / "cache"}
        assert load_nested_ner(file, **load)["train"][0]["pos"] == []
        columns = {"tokens": 0, "pos": 1, "entities": [3]}
        assert load_nested_ner(file, columns=columns, **load)["train"][0]["pos"] == ["NNP", "VBZ"]
        with pytest.raises(CorpusError, match=r"'conllu'.*columns"):
            load_nested_ner(write_files(tmp_path, SAMPLES["conllu"]), columns=columns)
