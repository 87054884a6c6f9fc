"""Convert a corpus: any format that can be read → JSON lines, columns of IOB2 tags, or brat's standoff form.

    triaffine-ner convert annotated/ corpus/ --to json_lines
    triaffine-ner convert germeval.tsv corpus/ --to brat --columns tokens=1 entities=2,3

The output folder gets a file or folder for every split. What was dropped in reading, and what the new format does not
hold, is told on standard error.
"""

import argparse
import sys

from ..data import WRITERS, load_nested_ner, write_nested_ner
from ..model.text_triaffine import SENTENCE_SPLITTERS
from . import arguments as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", help="a corpus file, a folder of documents, or a folder with train, dev and test")
    parser.add_argument("output", help="folder to write, new or empty")
    parser.add_argument(
        "--to", choices=list(WRITERS), default="json_lines", help="format to write (default: json_lines)"
    )
    shared.add_corpus_format(parser)
    parser.add_argument(
        "--sentences",
        choices=list(SENTENCE_SPLITTERS),
        help="how texts are cut into sentences, where the corpus has texts (default: punctuation)",
    )
    parser.add_argument(
        "--columns",
        nargs="+",
        type=column,
        metavar="NAME=NUMBER",
        help="what the columns of IOB2 hold, from 0: tokens=0 entities=1,2 pos=3 (default: told from the file)",
    )


def run(arguments: argparse.Namespace) -> None:
    columns = dict(arguments.columns) if arguments.columns else None
    corpus = load_nested_ner(arguments.corpus, arguments.format, sentence_splitter=arguments.sentences, columns=columns)
    not_held = write_nested_ner(corpus, arguments.output, arguments.to)
    for split, records in corpus.items():
        entities = sum(len(found) for found in records["entities"])
        lost = "".join(f"; {what} not kept: {count}" for what, count in not_held[split].items())
        print(f"{split}: {len(records)} sentences with {entities} entities written{lost}.", file=sys.stderr)


def column(text: str) -> tuple[str, int | list[int]]:
    """`entities=1,2` → ("entities", [1, 2]), as argparse's `type`."""
    name, _, numbers = text.partition("=")
    try:
        found = [int(number) for number in numbers.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form entities=1,2") from None
    return name, found if name == "entities" else found[0]
