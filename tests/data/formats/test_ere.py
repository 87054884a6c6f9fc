"""ERE, in small documents of the form of the originals: news and forums."""

import pytest

from modeling_triaffine.data import FORMATS, CorpusError
from tests.helpers.corpora import NESTED, ere_annotations, read, spelled, write_files
from tests.helpers.format_cases import SAMPLES

MENTIONS = [("The mayor of Orsk", "PER"), ("Orsk", "GPE"), ("AT&amp;T", "ORG")]


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
