"""What a long run says of its progress where standard error is no terminal."""

from modeling_triaffine import documents


def test_a_line_says_rate_and_time_left(monkeypatch, capsys):
    assert list(documents.with_progress("abc", total=3)) == [*"abc"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(documents, "SECONDS_OF_A_LINE", 0)
    assert list(documents.with_progress("abcdefg", total=7)) == [*"abcdefg"]
    assert "3 documents of 7, 00:00 left, " in capsys.readouterr().err
