"""Arguments that several commands share, so that they have one name and one meaning everywhere."""

import argparse

from datasets import Dataset

from ..data import FORMATS, load_nested_ner
from ..decoding_triaffine import OVERLAPS


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="folder or Hub name of a trained model")


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, cuda, cuda:1 … (default: a GPU where there is one)")


def add_batch_size(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--batch-size", type=positive_integer, default=default, help=f"sentences that run together (default: {default})"
    )


def add_decoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threshold", type=float, help="least probability of an entity (default: likeliest label)")
    parser.add_argument(
        "--overlap", choices=OVERLAPS, default="all", help="which entities may stand together (default: all)"
    )


def add_corpus_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=sorted(FORMATS), help="of the corpus (default: told from its name and content)"
    )


def add_split(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--split", default=default, help=f"train, validation or test (default: {default})")


def load_split(path: str, form: str | None, split: str) -> Dataset:
    """One split of a corpus.

    Raises:
        ValueError: the corpus has no such split.
    """
    splits = load_nested_ner(path, form)
    if split not in splits:
        raise ValueError(f"{path} has no split {split!r}; it has {', '.join(splits)}.")
    return splits[split]


def positive_integer(text: str) -> int:
    """A whole number of at least 1, as argparse's `type`."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is too small; give at least 1")
    return value


def port_number(text: str) -> int:
    """0 to 65535, as argparse's `type`."""
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is no port; give 0 to 65535")
    return value
