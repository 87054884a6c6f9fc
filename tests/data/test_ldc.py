"""ACE and ERE, in small documents of the form of the originals: sources, annotations, lists, stages, forums."""

import pytest

from modeling_triaffine.data import FORMATS, CorpusError, load_nested_ner
from tests.helpers.corpora import NESTED, ace_annotations, ere_annotations, read, spelled, write_files
from tests.helpers.format_cases import SAMPLES

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


# ---- ERE ----

NEWS = """<?xml version="1.0" encoding="utf-8"?>
<DOC id="NEWS_1">
<HEADLINE>Mayor sleeps</HEADLINE>
<TEXT><P>
The mayor of Orsk
slept. AT&amp;T did not.
</P></TEXT>
</DOC>
"""
FORUM = """<doc id="DF_1">
<post id="p1" author="Ann Lee" datetime="2014-01-01">
<quote orig_author="Bo">
I saw Bo Ek .
</quote>
I met Cy Dee .
</post>
</doc>
"""


def write_ere(folder, name="NEWS_1", source=NEWS, mentions=MENTIONS, others=""):
    """A corpus as distributed: annotations in `ere`, texts in `source`."""
    files = {f"source/{name}.xml": source}
    return write_files(
        folder, files | {f"ere/{name}.rich_ere.xml": ere_annotations(mentions, source, others, name=name)}
    )


def test_mentions_become_entities_and_tags_end_sentences(tmp_path):
    write_ere(tmp_path)
    records, check = read(tmp_path)
    assert [(record["doc_id"], " ".join(record["tokens"])) for record in records] == [
        ("NEWS_1", "Mayor sleeps"),
        ("NEWS_1", "The mayor of Orsk slept ."),
        ("NEWS_1", "AT & T did not ."),
    ]
    assert [spelled(record) for record in records] == [
        [],
        [("The mayor of Orsk", "PER"), ("Orsk", "GPE")],
        [("AT & T", "ORG")],
    ]
    assert not check.report()


def test_many_documents_take_one_look_at_every_folder(tmp_path, monkeypatch):
    for number in range(5):
        write_ere(tmp_path, f"NEWS_1.{number}")
    write_files(tmp_path, {"ere/._NEWS_1.1.rich_ere.xml": "\0"})  # as macOS leaves in archives
    looked_at = []
    iterdir = type(tmp_path).iterdir
    monkeypatch.setattr(type(tmp_path), "iterdir", lambda path: looked_at.append(path) or iterdir(path))
    assert len(FORMATS["ere"].documents(tmp_path)) == 10
    assert sorted(looked_at) == [tmp_path / "ere", tmp_path / "source"]
    assert len(read(tmp_path)[0]) == 15


def test_the_name_of_one_document_may_begin_that_of_another(tmp_path):
    for name in ("NEWS_1", "NEWS_1.2"):
        write_ere(tmp_path, name)
    assert set(record["doc_id"] for record in read(tmp_path)[0]) == {"NEWS_1", "NEWS_1.2"}


def test_both_files_may_be_in_a_folder_called_source(tmp_path):
    write_files(tmp_path / "source", SAMPLES["ere"])
    assert spelled(read(tmp_path)[0][0]) == NESTED


def test_other_annotations_are_counted(tmp_path):
    others = "<fillers><filler/><filler/></fillers><relations><relation><relation_mention/></relation></relations>"
    write_ere(tmp_path, others=others + "<hoppers><hopper><event_mention/></hopper></hoppers>")
    _, check = read(tmp_path)
    assert check.counts == {"fillers ignored": 2, "relations ignored": 1, "events ignored": 1}


def test_quotes_of_other_posts_are_not_read_and_authors_dropped(tmp_path):
    write_ere(tmp_path, "DF_1", FORUM, [("Ann Lee", "PER"), ("Cy Dee", "PER")])
    records, check = read(tmp_path)
    assert [" ".join(record["tokens"]) for record in records] == ["I met Cy Dee ."]
    assert spelled(records[0]) == [("Cy Dee", "PER")]
    assert "mentions inside tags dropped: 1 (ere/DF_1.rich_ere.xml, m-0: Ann Lee" in check.report()


def test_a_quote_is_read_where_it_is_annotated(tmp_path):
    write_ere(tmp_path, "DF_1", FORUM, [("Bo Ek", "PER")])
    assert [spelled(record) for record in read(tmp_path)[0]] == [[("Bo Ek", "PER")], []]


def test_two_texts_of_one_document_are_refused(tmp_path):
    write_ere(tmp_path)
    write_files(tmp_path, {"ere/NEWS_1.txt": NEWS})
    with pytest.raises(CorpusError, match=r"NEWS_1\.rich_ere\.xml: .*several: .*NEWS_1\.txt, .*NEWS_1\.xml"):
        read(tmp_path)
