"""Output files, which appear whole or not at all."""

import errno
import os
import threading
from pathlib import Path

import pytest

from modeling_triaffine.files import open_output, paths_below, write_text


def test_output_appears_when_it_is_whole(tmp_path, capsys):
    with open_output(Path("-")) as output:
        output.write("shown")
    assert capsys.readouterr().out == "shown"
    path = tmp_path / "folder" / "out.txt"

    def stop_half_way():
        with open_output(path) as output:
            output.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_half_way()
    assert list(path.parent.iterdir()) == []
    path.touch()
    path.chmod(0o600)  # as a user wants it
    path.with_name("out.txt.incomplete").mkdir()  # as a killed process may leave it
    write_text(path, "\ud800")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("\\ud800", 0o600)
    with pytest.raises(ValueError, match="is a folder"), open_output(tmp_path):
        pass
    with pytest.raises(OSError, match=r"left.*out\.txt"), open_output(path):
        raise OSError(errno.ENOSPC, "No space is left")


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with open_output(link) as output:
        output.write("new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    with open_output(pipe) as output:
        output.write("é")
    reader.join()
    assert (pipe.is_fifo(), read) == (True, ["é"])


def test_what_is_below_a_folder_is_found_once_also_behind_links(tmp_path):
    """Whether the file system lists a folder or a link to it first, which seven names leave to no chance."""
    folder, letters = tmp_path / "in", "bcdefgh"
    for path in (folder / "z.txt", tmp_path / "elsewhere/deep/y.txt", *(folder / name / "x.txt" for name in letters)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    (folder / "around").symlink_to(folder)
    for name, other in zip(letters, reversed(letters), strict=True):
        (folder / f"again_{name}").symlink_to(folder / name)
        (folder / name / "other").symlink_to(folder / other)
    files = [path.relative_to(folder).as_posix() for path in paths_below(folder) if path.is_file()]
    assert files == ["a/deep/y.txt", *(f"{name}/x.txt" for name in letters), "z.txt"]
    with pytest.raises(OSError, match="gone"):
        paths_below(folder / "gone")
