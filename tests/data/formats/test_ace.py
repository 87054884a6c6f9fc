"""ACE, in small documents of the form of the originals: sources, annotations, lists, stages."""

import pytest

from modeling_triaffine.data import CorpusError, load_nested_ner
from tests.helpers.corpora import ace_annotations, read, spelled, write_files

SOURCE = """<DOC>
<DOCID> NEWS_1 </DOCID>
<DATETIME> 20030401 </DATETIME>
<BODY>
<HEADLINE>
Mayor sleeps
</HEADLINE>
<TEXT>
<TURN>
<SPEAKER> ANN LEE </SPEAKER>
The mayor of Orsk
slept. AT&amp;T, his firm,
did not.
</TURN>
</TEXT>
</BODY>
<ENDTIME> 20030402 </ENDTIME>
</DOC>
"""


MENTIONS = [("The mayor of Orsk", "PER"), ("Orsk", "GPE"), ("AT&amp;T", "ORG")]


def write(folder, name="NEWS_1", source=SOURCE, annotations=None):
    annotations = ace_annotations(MENTIONS, SOURCE, name=name) if annotations is None else annotations
    write_files(folder, {f"{name}.sgm": source, f"{name}.apf.xml": annotations})
    return folder


class TestDocuments:
    def test_mentions_become_entities_and_tags_end_sentences(self, tmp_path):
        records, check = read(write(tmp_path))
        assert [" ".join(record["tokens"]) for record in records] == [
            "ANN LEE",
            "The mayor of Orsk slept .",
            "AT & T , his firm , did not .",
        ]
        assert [spelled(record) for record in records] == [
            [],
            [("The mayor of Orsk", "PER"), ("Orsk", "GPE")],
            [("AT & T", "ORG")],
        ]
        assert [(record["id"], record["doc_id"]) for record in records][:2] == [
            ("NEWS_1:0", "NEWS_1"),
            ("NEWS_1:1", "NEWS_1"),
        ]
        assert not check.report()

    def test_a_headline_is_text_where_it_is_annotated(self, tmp_path):
        records, _ = read(write(tmp_path, annotations=ace_annotations([("Mayor", "PER")], SOURCE)))
        assert records[0]["tokens"] == ["Mayor", "sleeps"]
        assert spelled(records[0]) == [("Mayor", "PER")]

    def test_other_annotations_are_counted(self, tmp_path):
        others = "<value><value_mention/></value><timex2><timex2_mention/><timex2_mention/></timex2>"
        others += "<relation><relation_mention/></relation><event><event_mention/></event>"
        _, check = read(write(tmp_path, annotations=ace_annotations(MENTIONS, SOURCE, others)))
        assert check.counts == {"values ignored": 1, "times ignored": 2, "relations ignored": 1, "events ignored": 1}

    def test_a_mention_over_a_tag_is_lost(self, tmp_path):
        source = SOURCE.replace("of Orsk\n", "of <b>Orsk</b>\n")
        records, check = read(write(tmp_path, source=source, annotations=ace_annotations(MENTIONS, source)))
        assert [found for record in records for found in spelled(record)] == [("Orsk", "GPE"), ("AT & T", "ORG")]
        assert "entities across sentences dropped: 1 (NEWS_1.apf.xml: PER" in check.report()

    def test_line_ends_of_windows_count_one(self, tmp_path):
        records, check = read(write(tmp_path, source="\ufeff" + SOURCE.replace("\n", "\r\n")))
        assert spelled(records[1]) == [("The mayor of Orsk", "PER"), ("Orsk", "GPE")]
        assert not check.report()

    def test_one_document_alone(self, tmp_path):
        assert len(read(write(tmp_path) / "NEWS_1.apf.xml")[0]) == 3


class TestLists:
    @pytest.fixture
    def corpus(self, tmp_path):
        """Two documents in two stages, a third in one."""
        for stage in ("adj", "timex2norm"):
            for name in ("NEWS_1", "NEWS_2"):
                write(tmp_path / "nw" / stage, name)
        write(tmp_path / "bn" / "adj", "CNN_3.4")
        return tmp_path

    def test_the_last_stage_is_taken(self, corpus):
        write(corpus / "nw" / "adj", "NEWS_2", annotations=ace_annotations([]))
        records, check = read(corpus)
        assert [doc for doc in dict.fromkeys(record["doc_id"] for record in records)] == ["CNN_3.4", "NEWS_1", "NEWS_2"]
        assert any(record["entities"] for record in records if record["doc_id"] == "NEWS_2")
        assert "earlier stages of annotation ignored: 2" in check.report()

    def test_name_documents_with_or_without_folder_and_suffix(self, corpus):
        write(corpus / "nw" / "adj", "NEWS_2", annotations=ace_annotations([]))
        (corpus / "train.txt").write_text("nw\\adj\\NEWS_2\r\n\nCNN_3.4.sgm\nNEWS_1.apf.xml\n")
        records, _ = read(corpus / "train.txt")
        assert list(dict.fromkeys(record["doc_id"] for record in records)) == ["NEWS_2", "CNN_3.4", "NEWS_1"]
        assert not any(record["entities"] for record in records if record["doc_id"] == "NEWS_2")

    def test_are_the_splits_of_a_folder(self, corpus, tmp_path, caplog):
        (corpus / "train.txt").write_text("NEWS_1\n")
        (corpus / "dev.txt").write_text("bn/adj/CNN_3.4\n")
        loaded = load_nested_ner(corpus)
        assert {split: set(rows["doc_id"]) for split, rows in loaded.items()} == {
            "train": {"NEWS_1"},
            "validation": {"CNN_3.4"},
        }
        assert (
            f"{corpus}: files outside all splits left out: 2 (nw/adj/NEWS_2.apf.xml, nw/timex2norm/NEWS_2.apf.xml)."
            in caplog.messages
        )
        streamed = load_nested_ner({"test": corpus / "dev.txt"}, "ace", streaming=True)
        assert list(streamed["test"]) == list(loaded["validation"])

    def test_without_lists_a_folder_is_train(self, corpus, tmp_path):
        loaded = load_nested_ner(corpus)
        assert {split: len(rows) for split, rows in loaded.items()} == {"train": 9}

    def test_what_is_not_there(self, corpus):
        (corpus / "train.txt").write_text("NEWS_1\nnw/fp1/NEWS_1\n")
        with pytest.raises(CorpusError, match=r"train\.txt, line 2: .*'nw/fp1/NEWS_1'"):
            read(corpus / "train.txt", "ace")

    def test_annotations_without_their_text(self, tmp_path):
        (write(tmp_path) / "NEWS_1.sgm").unlink()
        with pytest.raises(CorpusError, match=r"NEWS_1\.apf\.xml: .*NEWS_1\.sgm"):
            read(tmp_path, "ace")

    def test_a_document_twice(self, corpus):
        write(corpus / "more", "NEWS_1")
        with pytest.raises(CorpusError, match=r"'NEWS_1', in .*more"):
            read(corpus)
