"""Which state of this package's source a run was made with, where git knows it."""

import subprocess
from pathlib import Path

REVISION = "git revision"


def source_revision(file: Path = Path(__file__)) -> dict[str, str]:
    """The commit that a source file is checked out from, under the name it has among the versions of a run.

    The revision ends in "-dirty" where the checkout has changes that are not in the commit. Nothing is said of a file
    that git does not track, such as that of an installed package, and nothing where there is no git.
    """
    if _git(file, "ls-files", "--error-unmatch", file.name) is None:
        return {}
    revision = _git(file, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return {REVISION: revision} if revision else {}


def _git(file: Path, *arguments: str) -> str | None:
    """What git prints when run in the folder of `file`; None where it cannot."""
    try:
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
