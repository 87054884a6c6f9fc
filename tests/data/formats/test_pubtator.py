"""PubTator's text files."""

from modeling_triaffine.data import detect_format
from tests.helpers.corpora import (
    read,
    spelled,
    write_files,
)


def test_pubtator_as_published(tmp_path):
    lines = [
        "1|t|Naloxone reverses clonidine.",
        "1|a|In rats, it did not. Clonidine won",
        "1\t0\t8\tNaloxone\tChemical\tD009270",
        "1\t18\t27\tclonidine\tChemical\tD003000\tpart|part",
        "1\t50\t59\tClonidine\tChemical\tD003000",
        "1\tCID\tD009270\tD003000",
        "",
        "2|t|No abstract",
        "",
        "",
    ]
    path = write_files(tmp_path, {"train.PubTator.txt": "\n".join(lines)})
    assert detect_format(path).name == "pubtator"
    records, check = read(path)
    assert [record["id"] for record in records] == ["1:0", "1:1", "1:2", "2:0"]
    found = [entity for record in records for entity in spelled(record)]
    assert found == [("Naloxone", "Chemical"), ("clonidine", "Chemical"), ("Clonidine", "Chemical")]
    assert check.counts == {"relations ignored": 1}
