"""The same as `triaffine-ner analyse`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["analyse", *sys.argv[1:]])
