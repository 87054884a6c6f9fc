"""The command line, `triaffine-ner COMMAND …`: one module per command, and what they share.

The module of a command has its options, its help and the order of its steps. The other folders do the work; they are
imported when the command runs, so that help and usage errors appear at once.
"""

import gc
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import ending_plainly


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; a user's mistake ends the process with code 2 and a message of one paragraph."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # As shells do in `--output ~/a`, but not in `--output=~/a`.
    given = [re.sub(r"^--[\w-]+=~(?=/|$)", lambda found: found[0][:-1] + str(Path.home()), one) for one in given]
    # By default, garbage collections take a seventh of a command's start: imports of torch and transformers make many
    # objects, and next to no garbage.
    gc.set_threshold(50_000)
    if not sys.stderr.isatty():  # bars of loading and downloading would fill a log
        for library in ("HF_HUB", "HF_DATASETS"):
            os.environ.setdefault(f"{library}_DISABLE_PROGRESS_BARS", "1")
    with ending_plainly():
        from .application import COMPLETION, PROGRAM, build_application, run

        if COMPLETION in os.environ:
            build_application().main(prog_name=PROGRAM)  # answers the shell, and exits
        run(build_application(given[0] if given else ""), given)
