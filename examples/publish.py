"""The same as `triaffine-ner publish`; --help tells the rest."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["publish", *sys.argv[1:]])
