"""The same as `triaffine-ner statistics`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["statistics", *sys.argv[1:]])
