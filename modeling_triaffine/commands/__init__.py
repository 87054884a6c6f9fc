"""The command line, `triaffine-ner COMMAND …`: one module for each command, and what they share.

A command's module holds its options, its help and the order of its steps; the work itself is done in the other rooms,
which are imported when the command runs, so that help and usage errors answer at once.
"""

import os
import sys
from collections.abc import Sequence

from ..errors import ending_plainly


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; a mistake of the user ends the process with code 2 and one paragraph."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with ending_plainly():
        from .application import COMPLETION, PROGRAM, build_application, run

        if COMPLETION in os.environ:
            build_application().main(prog_name=PROGRAM)  # answers the shell, and exits
        run(build_application(given[0] if given else ""), given)
