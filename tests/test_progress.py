"""What a long run says of its progress where standard error is no terminal."""

from modeling_triaffine import progress


def test_a_line_says_rate_and_time_left(monkeypatch, capsys):
    assert list(progress.with_progress("abc", "documents", total=3)) == [*"abc"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS", 0)
    assert list(progress.with_progress("abcdefg", "documents", total=7)) == [*"abcdefg"]
    assert "3 documents of 7, 00:00 left, " in capsys.readouterr().err
