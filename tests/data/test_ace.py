"""ACE's originals, in small documents of the same form: sources, annotations, lists, stages of annotation."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, load_nested_ner
from tests.helpers.corpora import read, spelled

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
</DOC>
"""
MENTIONS = {"PER": ["The mayor of Orsk"], "GPE": ["Orsk"], "ORG": ["AT&amp;T"]}


def untagged(source):
    """What offsets count: the source without its tags."""
    text = ""
    for part in source.split("<"):
        text += part.partition(">")[2] if text or part.startswith("DOC") else part
    return text


def annotated(source=SOURCE, mentions=MENTIONS, others="", name="NEWS_1"):
    """The annotations of these texts, each where it first stands in the source."""
    text = untagged(source)
    entities = ""
    for kind, texts in mentions.items():
        for number, quoted in enumerate(texts):
            start = text.index(quoted)
            end = start + len(quoted) - 1
            entities += (
                f'<entity ID="{name}-E{kind}" TYPE="{kind}" SUBTYPE="x">\n'
                f'<entity_mention ID="{name}-{kind}-{number}" TYPE="NAM"><extent>\n'
                f'<charseq START="{start}" END="{end}">{quoted}</charseq>\n</extent>'
                f'<head><charseq START="{start}" END="{start}">x</charseq></head></entity_mention></entity>\n'
            )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">\n'
        f'<source_file URI="{name}.sgm"><document DOCID="{name}">\n{entities}{others}</document></source_file>\n'
    )


def write(folder, name="NEWS_1", source=SOURCE, annotations=None):
    folder.mkdir(parents=True, exist_ok=True)
    if source is not None:
        (folder / f"{name}.sgm").write_bytes(source.encode())
    (folder / f"{name}.apf.xml").write_text(
        annotated(name=name) if annotations is None else annotations, encoding="utf-8"
    )
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
        records, _ = read(write(tmp_path, annotations=annotated(mentions={"PER": ["Mayor"]})))
        assert records[0]["tokens"] == ["Mayor", "sleeps"]
        assert spelled(records[0]) == [("Mayor", "PER")]

    def test_other_annotations_are_counted(self, tmp_path):
        others = "<value><value_mention/></value><timex2><timex2_mention/><timex2_mention/></timex2>"
        others += "<relation><relation_mention/></relation><event><event_mention/></event>"
        _, check = read(write(tmp_path, annotations=annotated(others=others)))
        assert check.counts == {"values ignored": 1, "times ignored": 2, "relations ignored": 1, "events ignored": 1}

    def test_a_mention_over_a_tag_is_lost(self, tmp_path):
        source = SOURCE.replace("of Orsk\n", "of <b>Orsk</b>\n")
        records, check = read(write(tmp_path, source=source, annotations=annotated(source)))
        assert [found for record in records for found in spelled(record)] == [("Orsk", "GPE"), ("AT & T", "ORG")]
        assert "entities lost, over the end of a sentence: 1 (NEWS_1.apf.xml: PER" in check.report()

    def test_line_ends_of_windows_count_one(self, tmp_path):
        records, check = read(write(tmp_path, source="\ufeff" + SOURCE.replace("\n", "\r\n")))
        assert spelled(records[1]) == [("The mayor of Orsk", "PER"), ("Orsk", "GPE")]
        assert not check.report()

    def test_one_document_alone(self, tmp_path):
        assert len(read(write(tmp_path) / "NEWS_1.apf.xml")[0]) == 3


class TestErrors:
    @pytest.mark.parametrize(
        ("annotations", "problem"),
        [
            (annotated()[:-20], "NEWS_1.apf.xml: broken XML, "),
            (
                annotated().replace('END="', 'END="x'),
                "NEWS_1.apf.xml, NEWS_1-PER-0: it has no extent with START and END",
            ),
            (annotated().replace("charseq", "other"), "NEWS_1.apf.xml, NEWS_1-PER-0: it has no extent"),
            (annotated().replace('TYPE="PER" ', ""), "NEWS_1.apf.xml, NEWS_1-PER-0: field 'TYPE' is missing"),
            (
                annotated().replace(">Orsk<", ">Omsk<"),
                "NEWS_1.apf.xml, NEWS_1-GPE-0: 'extent' is noted as 'Omsk', but from",
            ),
            (
                annotated(SOURCE + "Orsk " * 99 + "X", {"PER": ["X"]}),
                "NEWS_1.apf.xml, NEWS_1-PER-0: field 'extent' runs from",
            ),
        ],
    )
    def test_name_the_mention(self, tmp_path, annotations, problem):
        with pytest.raises(CorpusError) as caught:
            read(write(tmp_path, annotations=annotations), "ace")
        assert str(caught.value).startswith(f"{tmp_path}, {problem}")

    def test_no_source(self, tmp_path):
        with pytest.raises(CorpusError, match=r"NEWS_1\.apf\.xml: there is no NEWS_1\.sgm beside it"):
            read(write(tmp_path, source=None))

    def test_entities_of_xml_do_not_grow(self, tmp_path):
        bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefghi", "bcdefghij", strict=True)
        )
        with pytest.raises(CorpusError, match="broken XML"):
            read(write(tmp_path, annotations=f"{bomb}]><a>&j;</a>"), "ace")


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
        write(corpus / "nw" / "adj", "NEWS_2", annotations=annotated(mentions={}))
        records, check = read(corpus)
        assert [doc for doc in dict.fromkeys(record["doc_id"] for record in records)] == ["CNN_3.4", "NEWS_1", "NEWS_2"]
        assert any(record["entities"] for record in records if record["doc_id"] == "NEWS_2")
        assert "earlier stages of annotation ignored: 2" in check.report()

    def test_name_documents_with_or_without_folder_and_suffix(self, corpus):
        write(corpus / "nw" / "adj", "NEWS_2", annotations=annotated(mentions={}))
        (corpus / "train.txt").write_text("nw/adj/NEWS_2\r\n\nCNN_3.4.sgm\nNEWS_1.apf.xml\n")
        records, _ = read(corpus / "train.txt")
        assert list(dict.fromkeys(record["doc_id"] for record in records)) == ["NEWS_2", "CNN_3.4", "NEWS_1"]
        assert not any(record["entities"] for record in records if record["doc_id"] == "NEWS_2")

    def test_are_the_splits_of_a_folder(self, corpus, tmp_path, caplog):
        (corpus / "train.txt").write_text("NEWS_1\n")
        (corpus / "dev.txt").write_text("bn/adj/CNN_3.4\n")
        loaded = load_nested_ner(corpus, cache_dir=tmp_path.parent / f"{tmp_path.name}-cache")
        assert {split: set(rows["doc_id"]) for split, rows in loaded.items()} == {
            "train": {"NEWS_1"},
            "validation": {"CNN_3.4"},
        }
        assert f"{corpus}: documents that no list names ignored: 2 (NEWS_2.apf.xml)." in caplog.messages
        streamed = load_nested_ner({"test": corpus / "dev.txt"}, "ace", streaming=True)
        assert list(streamed["test"]) == list(loaded["validation"])

    def test_without_lists_a_folder_is_train(self, corpus, tmp_path):
        loaded = load_nested_ner(corpus, cache_dir=tmp_path.parent / f"{tmp_path.name}-cache")
        assert {split: len(rows) for split, rows in loaded.items()} == {"train": 9}

    def test_what_is_not_there(self, corpus):
        (corpus / "train.txt").write_text("NEWS_1\nnw/fp1/NEWS_1\n")
        with pytest.raises(
            CorpusError, match=r"train\.txt, line 2: there is no document 'nw/fp1/NEWS_1' \(\.apf\.xml\) in"
        ):
            read(corpus / "train.txt", "ace")

    def test_a_document_twice(self, corpus):
        write(corpus / "more", "NEWS_1")
        with pytest.raises(
            CorpusError, match=r"there are several documents 'NEWS_1', in .*more.* or name it in a list"
        ):
            read(corpus, "ace")


@settings(deadline=None)
@given(
    st.text(st.sampled_from("<>TEX/&amp;lt \r\n\ufeff\0😀"), max_size=40),
    st.binary(max_size=30) | st.just(annotated().encode()),
)
def test_whatever_the_files_hold(tmp_path_factory, source, annotations):
    """They are read, or told to be broken."""
    folder = write(tmp_path_factory.mktemp("ace"), source=source, annotations="")
    (folder / "NEWS_1.apf.xml").write_bytes(annotations)
    with suppress(CorpusError):
        records, check = read(folder, "ace")
        assert check.sentences == len(records)
