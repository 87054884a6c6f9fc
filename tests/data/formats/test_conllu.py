"""CoNLL-U with entities in brackets, and its texts."""

import pytest

from modeling_triaffine.data import load_nested_ner, load_texts
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import conllu, read, spelled, triples, write_files

GUM = """# newdoc id = doc
# global.Entity = GRP-etype-infstat
# sent_id = doc-1
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\tDiscourse=x|Entity=(1-person-new
2-3\tmayor's\t_\t_\t_\t_\t_\t_\t_\t_
2\tmayor\tmayor\tNOUN\tNN\t_\t0\troot\t_\t_
3\t's\t's\tPART\tPOS\t_\t2\tx\t_\t_
4\tOrsk\tOrsk\tPROPN\tNNP\t_\t2\tx\t_\tEntity=(2-place-new-Orsk%2C_City)1)(3-event|SpaceAfter=No
5\tday\tday\tNOUN\tNN\t_\t2\tx\t_\tEntity=(3-event)3)

# sent_id = doc-2
1\the\the\tPRON\tPRP\t_\t0\troot\t_\tEntity=(1-person-giv)
"""


class TestConllu:
    def test_brackets_become_entities(self, tmp_path):
        records, check = read(write_files(tmp_path, {"a.conllu": GUM}))
        assert [record["tokens"] for record in records] == [["the", "mayor", "'s", "Orsk", "day"], ["he"]]
        assert [record["pos"] for record in records] == [["DET", "NOUN", "PART", "PROPN", "NOUN"], ["PRON"]]
        assert sorted(triples(records[0])) == [(0, 4, "person"), (3, 4, "place"), (3, 5, "event"), (4, 5, "event")]
        assert triples(records[1]) == [(0, 1, "person")]
        assert [(record["id"], record["doc_id"], record["sent_id"]) for record in records] == [
            ("doc-1", "doc", 0),
            ("doc-2", "doc", 1),
        ]
        assert not check.report()

    def test_parts_are_named_by_the_file(self, tmp_path):
        content = "# global.Entity = eid-head-etype\n" + conllu("(e1-1-place)")
        (record,), _ = read(write_files(tmp_path, {"a.conllu": content}))
        assert triples(record) == [(0, 1, "place")]

    def test_without_a_header_the_type_is_the_second_part(self, tmp_path):
        (record,), _ = read(write_files(tmp_path, {"a.conllu": conllu("(1-place", "1)")}))
        assert triples(record) == [(0, 2, "place")]
        assert record["pos"] == []

    @pytest.mark.parametrize(
        ("name", "tags"), [("name", ["B-A", "I-A", "O", "B-A", "Anna"]), ("ner", ["B-A", "E-A", "O", "S-A"])]
    )
    def test_tags_become_entities(self, tmp_path, name, tags):
        """As in NorNE and in the output of Stanza; a name that is no tag is none."""
        content = conllu(*tags).replace("Entity=", f"Gloss=B-X|{name}=")
        (record,), check = read(write_files(tmp_path, {"a.conllu": content}))
        assert triples(record) == [(0, 2, "A"), (3, 4, "A")]
        assert not check.report()

    @pytest.mark.parametrize(
        ("around", "inside", "expected"),
        [
            ("I-A", ["_", "_"], [(0, 4, "A")]),
            ("S-B", ["_", "_"], [(0, 1, "A"), (1, 3, "B"), (3, 4, "A")]),
            ("B-B", ["S-A", "_"], [(0, 1, "A"), (1, 2, "A"), (3, 4, "A")]),
        ],
    )
    def test_tags_of_multi_word_tokens_are_those_of_their_words(self, tmp_path, around, inside, expected):
        """Stanza writes them on the line of the token alone."""
        line = "{}\tw\t_\t_\t_\t_\t_\t_\t_\tner={}\n"
        last = "E-A" if around == "I-A" else "S-A"
        numbers, tags = [1, "2-3", 2, 3, 4], ["B-A", around, *inside, last]
        content = "".join(line.format(*one).replace("ner=_", "_") for one in zip(numbers, tags, strict=True))
        (record,), check = read(write_files(tmp_path, {"a.conllu": content}), "conllu")
        assert sorted(triples(record)) == expected
        assert not check.report()

    def test_values_that_are_no_tags_are_counted(self, tmp_path):
        content = conllu("LOC", "O").replace("Entity=", "NER=")
        _, check = read(write_files(tmp_path, {"a.conllu": content}), "conllu")
        assert check.counts == {"values of NER in MISC that are no tags (B-type) ignored": 1}

    def test_numbers_of_sentences_may_begin_anew(self, tmp_path):
        sentence = "# sent_id = 0\n" + conllu("(1-a)")
        content = f"# newdoc id = a\n{sentence}\n# newdoc id = b\n{sentence}"
        records, _ = read(write_files(tmp_path, {"a.conllu": content}))
        assert [record["id"] for record in records] == ["a:0", "b:0"]

    def test_what_no_sentence_holds_is_dropped(self, tmp_path):
        content = conllu("(1-place(9-time)", "(2[1/2]-person)", "(3", "3)(2[2/2]-person)(4-)") + "\n" + conllu("1)")
        records, check = read(write_files(tmp_path, {"a.conllu": content}))
        assert [triples(record) for record in records] == [[(0, 1, "time")], []]
        assert check.report() == (
            "a.conllu: sentences: 2; entities kept: 1 of 5; discontinuous entities dropped: 1 (line 2: 2[1/2]); "
            "entities across sentences dropped: 1 (line 1: 1); entities without a type dropped: 2 "
            "(line 4: 3 | line 4: 4)."
        )

    def test_empty_nodes(self, tmp_path):
        empty = "{}\t_\t_\t_\t_\t_\t_\t_\t_\tEntity={}\n"
        word = "{}\tw\t_\t_\t_\t_\t_\t_\t_\tEntity={}\n"
        content = empty.format("0.1", "(1-a)(2-b") + word.format(1, "2)(3-c") + empty.format("1.1", "3)")
        (record,), check = read(write_files(tmp_path, {"a.conllu": content}))
        assert triples(record) == [(0, 1, "b"), (0, 1, "c")]
        assert "entities without words dropped: 1 (line 1: 1)" in check.report()


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
def conllu_file(tmp_path):
    lines = [line.split(" ") for line in CONLLU.split("\n")]
    text = "\n".join(
        " ".join(line) if line[0] in ("", "#") else "\t".join([*line[:2], *"_" * 7, line[2]]) for line in lines
    )
    return write_files(tmp_path, {"a.conllu": text})


def test_documents_of_conllu(conllu_file):
    first, second = load_texts(conllu_file)["train"]
    assert first["text"] == "The CD28-mediated one.\n\nIt"
    assert {first["text"][e["start"] : e["end"]] for e in first["entities"]} == {"The CD28-mediated one", "CD28", "It"}
    assert (second["doc_id"], second["text"], second["entities"]) == ("b", "So", [])


def test_conllu_in_the_words_of_raw_text(conllu_file):
    splitter = word_splitter("punctuation")
    record, *_ = load_nested_ner(conllu_file, word_splitter=splitter)["train"]
    assert record["tokens"] == ["The", "CD28", "-", "mediated", "one", "."]
    assert set(spelled(record)) == {("The CD28 - mediated one", "thing"), ("CD28", "protein")}
