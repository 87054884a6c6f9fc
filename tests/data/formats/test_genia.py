"""The reader of GENIA's XML: the corpus' rules on small articles, and the counts of the whole file."""

import gzip
import re

import pytest

from modeling_triaffine.data import load_nested_ner, load_texts
from modeling_triaffine.data.formats import genia as reader
from modeling_triaffine.data.formats.genia import SPLIT_STARTS
from tests.helpers.corpora import article, cons, genia, triples


def white_space(text):
    return [word.span() for word in re.finditer(r"\S+", text)]


@pytest.fixture
def load(tmp_path):
    def load(*articles, **options):
        file = tmp_path / "genia.xml"
        file.write_text(genia(*articles), encoding="utf-8")
        return load_nested_ner(file, **options)

    return load


class TestRules:
    def test_words_end_at_white_space_and_tags(self, load):
        gene = cons("G#DNA_domain_or_region", cons("G#protein_molecule", "Il-9") + " gene")
        row = load(article(f"The {gene}-like\n  &lt;one&gt;."))["train"][0]
        assert row["tokens"] == ["The", "Il-9", "gene", "-like", "<one>."]
        assert triples(row) == [(1, 2, "protein"), (1, 3, "DNA")]
        assert (row["id"], row["doc_id"], row["sent_id"]) == ("MEDLINE:1:0", "MEDLINE:1", 0)
        assert (row["pos"], row["left_tokens"], row["right_tokens"]) == ([], None, None)

    @pytest.mark.parametrize(
        ("sem", "kind"),
        [
            ("G#DNA_N/A", "DNA"),
            ("G#RNA_molecule", "RNA"),
            ("G#protein_complex", "protein"),
            ("G#cell_line", "cell_line"),
            ("G#cell_type", "cell_type"),
            ("G#cell_component", None),
            ("G#other_name", None),
            ("G#polynucleotide", None),
            ("", None),
        ],
    )
    def test_classes(self, load, sem, kind):
        assert triples(load(article(cons(sem, "Xy")))["train"][0]) == ([(0, 1, kind)] if kind else [])

    def test_coordinations_give_none_and_are_counted(self, load):
        parts = '<cons lex="*a">A</cons> and <cons lex="*b">B</cons>'
        ours = cons("(AND G#protein_molecule G#protein_molecule)", parts + " " + cons("G#RNA_molecule", "c"))
        nested = cons("(BUT_NOT G#cell_line (OR G#cell_line G#cell_line))", parts)
        rows = load(article(f"{ours} {nested} {cons('(OR G#other_name G#other_name)', parts)}"))["train"]
        assert triples(rows[0]) == [(3, 4, "RNA")]
        assert rows.info.description == (
            "genia.xml: sentences: 1; entities kept: 1 of 3; coordinated entities dropped: 2."
        )

    def test_the_last_type_of_a_span_stays(self, load):
        two = cons("G#protein_molecule", cons("G#DNA_molecule", "a"))
        same = cons("G#cell_line", " " + cons("G#cell_line", "b"))
        reverse = cons("G#DNA_molecule", cons("G#protein_molecule", "c"))
        rows = load(article(f"{two} {same} {reverse}"))["train"]
        assert triples(rows[0]) == [(0, 1, "protein"), (1, 2, "cell_line"), (2, 3, "protein")]
        assert "duplicate entities dropped: 1" in rows.info.description
        assert "further types of a span dropped: 2" in rows.info.description

    def test_all_types_of_a_span_by_the_format_of_that_name(self, load, tmp_path):
        two = cons("G#protein_molecule", cons("G#DNA_domain_or_region", "tax"))
        same = cons("G#cell_line", cons("G#cell_line", "T1"))
        rows = load(article(f"{two} {same}"), format="genia_all_types")["train"]
        assert triples(rows[0]) == [(0, 1, "DNA"), (0, 1, "protein"), (1, 2, "cell_line")]
        assert "entities kept: 3 of 4; duplicate entities dropped: 1." in rows.info.description
        (document,) = load_texts(tmp_path / "genia.xml", "genia_all_types")["train"]
        assert [(entity["start"], entity["type"]) for entity in document["entities"]] == [
            *((0, "DNA"), (0, "protein"), (4, "cell_line"))
        ]

    def test_an_abstract_that_occurs_twice(self, load):
        rows = load(article("A", "B"), article("C"))["train"]
        assert rows["id"][:] == ["MEDLINE:1:0", "MEDLINE:1:1", "MEDLINE:1#2:0"]

    def test_unknown_tags_keep_their_text_and_are_counted(self, load):
        rows = load(article("x<sup>2</sup> y"))["train"]
        assert rows[0]["tokens"] == ["x2", "y"]
        assert "tags <sup> ignored, their text kept: 1" in rows.info.description

    def test_splits_are_counted_over_the_corpus(self, load, monkeypatch):
        """In sentences, also inside a document."""
        assert SPLIT_STARTS == {"train": 0, "validation": 15_023, "test": 16_692}
        monkeypatch.setattr(reader, "SPLIT_STARTS", {"train": 0, "validation": 3, "test": 9})
        splits = load(article("a", "b"), article("c", "d", "e", name="MEDLINE:2"))
        assert {name: rows["id"][:] for name, rows in splits.items()} == {
            "train": ["MEDLINE:1:0", "MEDLINE:1:1", "MEDLINE:2:0"],
            "validation": ["MEDLINE:2:1", "MEDLINE:2:2"],
        }


class TestWordSplitter:
    def test_cuts_the_text_as_written_and_counts_losses(self, load):
        title = f"the {cons('G#protein_molecule', 'Cd9')}-like {cons('G#cell_line', 'X 2')} ."
        rows = load(article(title), word_splitter=white_space)["train"]
        assert rows[0]["tokens"] == ["the", "Cd9-like", "X", "2", "."]
        assert triples(rows[0]) == [(2, 4, "cell_line")]
        assert rows.info.description == (
            "genia.xml: sentences: 1; entities kept: 1 of 2; entities with a boundary inside a word dropped: 1 "
            "(article MEDLINE:1: protein the [Cd9]-like X 2 .), of which "
            "--word_splitter letters_and_digits would keep 1; labels that lose more than 5 %: protein 1 of 1 (all)."
        )

    def test_is_part_of_the_cache_key(self, load):
        assert load(article("a-b"), word_splitter=white_space)["train"][0]["tokens"] == ["a-b"]
        assert load(article("a-b"), word_splitter=lambda text: [(0, 1), (1, 3)])["train"][0]["tokens"] == ["a", "-b"]
        assert load(article("a-b"))["train"][0]["tokens"] == ["a-b"]


class TestDocuments:
    def test_text_as_written_with_entities_by_characters(self, tmp_path):
        first = f"A  {cons('G#protein_molecule', cons('G#protein_subunit', 'Cd 9') + ' chain')}."
        (tmp_path / "a.xml").write_text(genia(article(first, "B", cons("G#cell_type", "T cell"))))
        splits = load_texts(tmp_path / "a.xml")
        (document,) = splits["train"]
        assert (document["doc_id"], list(splits)) == ("MEDLINE:1", ["train"])
        assert document["text"] == "A  Cd 9 chain.\nB T cell"
        spans = [(document["text"][e["start"] : e["end"]], e["type"]) for e in document["entities"]]
        assert spans == [("Cd 9", "protein"), ("Cd 9 chain", "protein"), ("T cell", "cell_type")]

    def test_a_document_over_a_border_comes_in_two_pieces(self, tmp_path, monkeypatch):
        monkeypatch.setitem(SPLIT_STARTS, "validation", 2)
        (tmp_path / "a.xml").write_text(genia(article("A", "B", "C", "D")))
        splits = load_texts(tmp_path / "a.xml")
        pieces = {split: [(one["doc_id"], one["text"]) for one in texts] for split, texts in splits.items()}
        assert pieces == {"train": [("MEDLINE:1", "A\nB")], "validation": [("MEDLINE:1", "C D")]}


class TestWholeCorpus:
    def test_the_first_articles(self, genia_xml, load):
        with gzip.open(genia_xml, "rt", encoding="utf-8") as whole:
            articles = re.findall("<article>.*?</article>", whole.read(200_000), re.DOTALL)
        rows = load(*articles)["train"]
        assert len(rows) == 379
        assert rows[0]["tokens"][:3] == ["IL-2", "gene", "expression"]
        assert triples(rows[0])[:2] == [(0, 2, "DNA"), (4, 6, "protein")]

    @pytest.mark.nightly
    def test_counts(self, genia_corpus):
        kept = {split: sum(map(len, rows["entities"])) for split, rows in genia_corpus.items()}
        assert {split: len(rows) for split, rows in genia_corpus.items()} == {"train": 15_023, "validation": 1_669}
        assert kept == {"train": 46_142, "validation": 4_367}
        report = genia_corpus["train"].info.description
        assert "coordinated entities dropped: 934" in report
        assert "further types of a span dropped: 26" in report

    @pytest.mark.nightly
    def test_documents_have_all_entities(self, genia_xml):
        splits = load_texts(genia_xml)
        for document in splits["train"] + splits["validation"]:
            assert all(document["text"][e["start"] : e["end"]].strip() for e in document["entities"])
        counts = {split: sum(len(document["entities"]) for document in texts) for split, texts in splits.items()}
        assert counts == {"train": 46_142, "validation": 4_367}
