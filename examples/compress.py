"""The same as `triaffine-ner compress`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["compress", *sys.argv[1:]])
