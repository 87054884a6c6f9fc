"""The same as `triaffine-ner explain`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["explain", *sys.argv[1:]])
