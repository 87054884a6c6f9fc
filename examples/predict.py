"""The same as `triaffine-ner predict`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["predict", *sys.argv[1:]])
