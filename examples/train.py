"""Trains a model: `triaffine-ner train` as a script, for `accelerate launch examples/train.py …`."""

import sys

from modeling_triaffine.commands import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
