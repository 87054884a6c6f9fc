"""The same as `triaffine-ner evaluate`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
