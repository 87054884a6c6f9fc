"""What a long run says of its progress where standard error is no terminal."""

from modeling_triaffine import progress


def test_a_line_says_rate_and_time_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 30)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(progress.with_progress("abcdefg", "documents", total=7)) == [*"abcdefg"]
    lines = ["3 documents of 7, 00:40 left, 10.00s/ documents", "6 documents of 7, 00:10 left, 10.00s/ documents"]
    assert capsys.readouterr().err.splitlines() == lines
