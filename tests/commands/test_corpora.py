"""`statistics` and `convert` through the real command."""

import json

import pytest


@pytest.mark.parametrize(("name", "more"), [("statistics", []), ("convert", ["out", "--to", "brat"])])
def test_bad_records_of_a_corpus(command, caplog, tmp_path, name, more):
    good = '{"tokens": ["Orsk"], "entities": [{"start": 0, "end": 1, "type": "City"}]}\n'
    (tmp_path / "a.jsonl").write_text(f"{good}{{\n{good}")
    more = [tmp_path / more[0], *more[1:]] if more else []
    failed = command(name, tmp_path / "a.jsonl", *more)
    assert (failed.code, "line 2" in failed.err) == (2, True)
    assert command(name, tmp_path / "a.jsonl", *more, "--max_bad_records", 1).code == 0
    assert ["bad records dropped: 1 (" in told and "line 2" in told for told in caplog.messages] == [True]


def test_statistics_keep_within_the_line(command, tmp_path):
    (tmp_path / "a.tsv").write_text(f"Orsk\tB-{200 * 'x'}\tO\nOmsk\tO\tO\n")
    counted = command("statistics", tmp_path / "a.tsv")
    assert "entities by type: xxx" in counted.out
    assert max(map(len, counted.out.splitlines())) <= 100


def test_several_files_are_one_corpus(command, tmp_path):
    """Named one by one, as a shell expands a pattern."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\tB-X\n\nslept\tO\n")
    files = sorted(tmp_path.glob("*.tsv"))
    (counted,) = json.loads(command("statistics", *files, "--json").out).values()
    assert counted["sentences"] == 4
    assert command("convert", *files, tmp_path / "out").code == 0
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"].partition(":")[0] for line in lines] == ["a", "b"]


def test_columns_are_given_one_by_one(command, tmp_path):
    (tmp_path / "a.tsv").write_text("1\tOrsk\tB-X\tO\n")
    columns = ("--columns", "tokens=1", "--columns", "entities=2,3")
    assert command("convert", tmp_path / "a.tsv", tmp_path / "out", *columns).code == 0
    (record,) = map(json.loads, (tmp_path / "out" / "train.jsonl").read_text().splitlines())
    assert (record["text"], record["entities"]) == ("Orsk", [{"start": 0, "end": 4, "label": "X"}])
    assert command("convert", tmp_path / "a.tsv", tmp_path / "a.tsv").code == 2
    assert (tmp_path / "a.tsv").read_text() == "1\tOrsk\tB-X\tO\n"
