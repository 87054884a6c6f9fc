"""The reader of GENIA's XML: the corpus' rules on small articles, and the whole file against the shared sentences."""

import gzip
import pickle
import re

import pytest
from datasets import load_from_disk

from modeling_triaffine.data import CorpusError, load_nested_ner, read_genia_documents
from modeling_triaffine.data.genia import GENIA, SPLIT_STARTS

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE set SYSTEM "gpml.dtd">\n<set>\n'


def cons(sem, text):
    return f'<cons lex="x" sem="{sem}">{text}</cons>'


def article(title, *sentences, name="MEDLINE:1"):
    body = "\n".join(f"<sentence>{sentence}</sentence>" for sentence in sentences)
    return (
        f"<article>\n<articleinfo>\n<bibliomisc>{name}</bibliomisc>\n</articleinfo>\n<title>\n<sentence>{title}"
        f"</sentence>\n</title>\n<abstract>\n{body}\n</abstract>\n</article>\n"
    )


def white_space(text):
    return [word.span() for word in re.finditer(r"\S+", text)]


def triples(entities):
    return [(entity["start"], entity["end"], entity["type"]) for entity in entities]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def load(tmp_path):
    def load(*articles, **options):
        file = tmp_path / "genia.xml"
        file.write_text(HEAD + "".join(articles) + "</set>\n", encoding="utf-8")
        return load_nested_ner(file, **options)

    return load


class TestRules:
    def test_words_end_at_white_space_and_tags(self, load):
        gene = cons("G#DNA_domain_or_region", cons("G#protein_molecule", "Il-9") + " gene")
        row = load(article(f"The {gene}-like\n  &lt;one&gt;."))["train"][0]
        assert row["tokens"] == ["The", "Il-9", "gene", "-like", "<one>."]
        assert triples(row["entities"]) == [(1, 2, "protein"), (1, 3, "DNA")]
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
        entities = load(article(cons(sem, "Xy")))["train"][0]["entities"]
        assert triples(entities) == ([(0, 1, kind)] if kind else [])

    def test_coordinations_give_none_and_are_counted(self, load):
        parts = '<cons lex="*a">A</cons> and <cons lex="*b">B</cons>'
        ours = cons("(AND G#protein_molecule G#protein_molecule)", parts + " " + cons("G#RNA_molecule", "c"))
        nested = cons("(BUT_NOT G#cell_line (OR G#cell_line G#cell_line))", parts)
        rows = load(article(f"{ours} {nested} {cons('(OR G#other_name G#other_name)', parts)}"))["train"]
        assert triples(rows[0]["entities"]) == [(3, 4, "RNA")]
        assert rows.info.description == (
            "genia.xml: sentences: 1; entities kept: 1 of 3; coordinated entities, which give none: 2."
        )

    def test_the_last_type_of_a_span_stays(self, load):
        two = cons("G#protein_molecule", cons("G#DNA_molecule", "a"))
        same = cons("G#cell_line", " " + cons("G#cell_line", "b"))
        rows = load(article(f"{two} {same}"))["train"]
        assert triples(rows[0]["entities"]) == [(0, 1, "protein"), (1, 2, "cell_line")]
        assert "duplicate entities dropped: 1" in rows.info.description
        assert "second types on one span dropped: 1" in rows.info.description

    def test_an_abstract_that_occurs_twice(self, load):
        rows = load(article("A", "B"), article("C"))["train"]
        assert rows["id"][:] == ["MEDLINE:1:0", "MEDLINE:1:1", "MEDLINE:1#2:0"]

    def test_unknown_tags_keep_their_text_and_are_counted(self, load):
        rows = load(article("x<sup>2</sup> y"))["train"]
        assert rows[0]["tokens"] == ["x2", "y"]
        assert "tags <sup> ignored, their text kept: 1" in rows.info.description

    @pytest.mark.parametrize(
        ("total", "sizes"),
        [
            (10, {"train": 10}),
            (15_023, {"train": 15_023}),
            (15_024, {"train": 15_023, "validation": 1}),
            (16_692, {"train": 15_023, "validation": 1_669}),
            (18_546, {"train": 15_023, "validation": 1_669, "test": 1_854}),
        ],
    )
    def test_splits_are_counted_over_the_corpus(self, total, sizes):
        splits = GENIA.splits(total)
        assert {name: len(rows) for name, rows in splits.items()} == sizes
        assert [number for rows in splits.values() for number in rows] == list(range(total))


class TestWordSplitter:
    def test_cuts_the_text_as_written_and_counts_losses(self, load):
        title = f"the {cons('G#protein_molecule', 'Cd9')}-like {cons('G#cell_line', 'X 2')} ."
        rows = load(article(title), word_splitter=white_space)["train"]
        assert rows[0]["tokens"] == ["the", "Cd9-like", "X", "2", "."]
        assert triples(rows[0]["entities"]) == [(2, 4, "cell_line")]
        assert rows.info.description == (
            "genia.xml: sentences: 1; entities kept: 1 of 2; entities lost, a border inside a word: 1."
        )

    def test_is_part_of_the_cache_key(self, load):
        assert load(article("a-b"), word_splitter=white_space)["train"][0]["tokens"] == ["a-b"]
        assert load(article("a-b"), word_splitter=lambda text: [(0, 1), (1, 3)])["train"][0]["tokens"] == ["a", "-b"]
        assert load(article("a-b"))["train"][0]["tokens"] == ["a-b"]

    def test_wrong_words_are_refused(self, load):
        with pytest.raises(ValueError, match=r"The word splitter must give .*it gave \[\(0, 9\)\]"):
            load(article("abc"), word_splitter=lambda text: [(0, 9)])


class TestBrokenFiles:
    def test_cut_in_half(self, tmp_path):
        whole = HEAD + article("One two") + article("Three", name="MEDLINE:2")
        (tmp_path / "half.xml").write_text(whole[: whole.index("Three")])
        for read in (load_nested_ner, lambda path: list(read_genia_documents(path))):
            with pytest.raises(CorpusError, match=r"half\.xml, line \d+: broken XML, .*The file may have been cut off"):
                read(tmp_path / "half.xml")

    def test_an_article_without_name(self, load):
        with pytest.raises(CorpusError, match=r"genia\.xml, line 6: an article's <bibliomisc> is empty"):
            load(article("A", name=" "))

    def test_another_xml(self, tmp_path):
        (tmp_path / "a.xml").write_text("<page><title>GENIA</title></page>")
        with pytest.raises(CorpusError, match="there is no sentence in it"):
            load_nested_ner(tmp_path / "a.xml")

    def test_unknown_label_names_line_and_article(self, load):
        with pytest.raises(CorpusError, match=r"line 9 \(article MEDLINE:1, sentence 0\): .*'RNA', which is not among"):
            load(article(cons("G#RNA_molecule", "a")), labels=["protein"])

    def test_entities_are_not_expanded(self, tmp_path):
        """Neither a growing one nor another file's content gets in."""
        (tmp_path / "secret").write_text("secret")
        for declaration in ('<!ENTITY e "eeee">', f'<!ENTITY e SYSTEM "{tmp_path / "secret"}">'):
            body = f"<!DOCTYPE set [{declaration}]>\n<set>{article('&e;')}</set>"
            (tmp_path / "bad.xml").write_text(body)
            with pytest.raises(CorpusError, match=r"bad\.xml, line 1: the XML declares the entity 'e'"):
                load_nested_ner(tmp_path / "bad.xml")


class TestDocuments:
    def test_text_as_written_with_entities_by_characters(self, tmp_path):
        first = f"A  {cons('G#protein_molecule', cons('G#protein_subunit', 'Cd 9') + ' chain')}."
        (tmp_path / "a.xml").write_text(HEAD + article(first, "B", cons("G#cell_type", "T cell")) + "</set>")
        (document,) = read_genia_documents(tmp_path / "a.xml")
        assert (document["doc_id"], document["split"]) == ("MEDLINE:1", "train")
        assert document["text"] == "A  Cd 9 chain.\nB T cell"
        spans = [(document["text"][e["start"] : e["end"]], e["type"]) for e in document["entities"]]
        assert spans == [("Cd 9", "protein"), ("Cd 9 chain", "protein"), ("T cell", "cell_type")]

    def test_a_document_over_a_border_comes_in_two_pieces(self, tmp_path, monkeypatch):
        monkeypatch.setitem(SPLIT_STARTS, "validation", 2)
        (tmp_path / "a.xml").write_text(HEAD + article("A", "B", "C", "D") + "</set>")
        pieces = [(d["doc_id"], d["split"], d["text"]) for d in read_genia_documents(tmp_path / "a.xml")]
        assert pieces == [("MEDLINE:1", "train", "A\nB"), ("MEDLINE:1", "validation", "C D")]


class TestSharedCorpus:
    @pytest.fixture(scope="class")
    def genia(self, shared):
        return shared / "data" / "genia"

    @pytest.fixture(scope="class")
    def from_xml(self, genia, tmp_path_factory):
        cache = tmp_path_factory.mktemp("cache")
        return load_nested_ner(genia / "GENIAcorpus3.02.train-dev.xml.gz", cache_dir=cache)

    def test_gives_exactly_the_shared_sentences(self, genia, from_xml):
        from_json = load_nested_ner(genia)
        assert list(from_xml) == list(from_json) == ["train", "validation"]
        for split, rows in from_json.items():
            assert str(from_xml[split].split) == split
            assert len(from_xml[split]) == len(rows)
            for column in ("id", "doc_id", "sent_id", "tokens", "entities"):
                assert from_xml[split][column][:] == rows[column][:]

    def test_reports_what_it_dropped(self, from_xml):
        report = from_xml["train"].info.description
        assert "coordinated entities, which give none: 934" in report
        assert "second types on one span dropped: 26" in report

    def test_streams_the_same(self, genia, from_xml):
        streamed = load_nested_ner(genia / "GENIAcorpus3.02.train-dev.xml.gz", streaming=True)
        assert {split: str(rows.split) for split, rows in streamed.items()} == {s: s for s in ("train", "validation")}
        assert next(iter(streamed["validation"])) == from_xml["validation"][0]

    def test_parts_behave_as_datasets(self, from_xml, tmp_path):
        part = from_xml["validation"].select([3, 1]).map(lambda row: {"sent_id": row["sent_id"] + 1})
        part.save_to_disk(tmp_path / "part")
        part = pickle.loads(pickle.dumps(part))
        assert part["id"][:] == load_from_disk(tmp_path / "part")["id"][:]
        assert part["id"][:] == [from_xml["validation"][3]["id"], from_xml["validation"][1]["id"]]

    def test_documents_hold_all_entities(self, genia):
        counts = {"train": 0, "validation": 0}
        for document in read_genia_documents(genia / "GENIAcorpus3.02.train-dev.xml.gz"):
            counts[document["split"]] += len(document["entities"])
            assert all(document["text"][e["start"] : e["end"]].strip() for e in document["entities"])
        assert counts == {"train": 46_142, "validation": 4_367}


def test_plain_and_gzipped_read_alike(tmp_path):
    content = (HEAD + article("A b", "C") + "</set>").encode()
    (tmp_path / "a.xml").write_bytes(content)
    (tmp_path / "b.xml.gz").write_bytes(gzip.compress(content))
    plain, packed = (load_nested_ner(tmp_path / name) for name in ("a.xml", "b.xml.gz"))
    assert list(plain["train"]) == list(packed["train"])
