"""The lowest versions that the package allows are those that `make test-lowest` runs."""

import configparser
from pathlib import Path

from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[1]


def test_lowest_versions_are_those_that_are_run():
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    lines = setup["options"]["install_requires"].split()
    lines += setup["options.extras_require"]["plot"].split()
    allowed = dict(line.split(">=") for line in lines)
    constraints = (REPOSITORY / "constraints-lowest.txt").read_text().splitlines()
    run = dict(line.lower().split("==") for line in constraints if not line.startswith("#"))
    assert {name: Version(lowest) for name, lowest in allowed.items()} == {name: Version(run[name]) for name in allowed}
