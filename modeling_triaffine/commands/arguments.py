"""Arguments that several commands share, so that they have one name and one meaning everywhere."""

import argparse

import torch
from datasets import Dataset

from ..data import FORMATS, load_nested_ner
from ..data.formats import SPLIT_OF_NAME
from ..model.decoding_triaffine import OVERLAPS


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


def add_split(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--split", help=f"train, validation (or dev) or test (default: {usual}, or the only one there is)"
    )
    parser.set_defaults(usual_split=usual)


def load_split(arguments: argparse.Namespace) -> tuple[str, Dataset]:
    """Name and records of the split of `arguments.data` that was asked for; else the usual one, or the only one.

    Raises:
        ValueError: the corpus has no such split.
    """
    splits = load_nested_ner(arguments.data, arguments.format)
    usual = next(iter(splits)) if len(splits) == 1 else arguments.usual_split
    wanted = split_name(arguments.split) if arguments.split else usual
    if wanted not in splits:
        raise ValueError(f"{arguments.data} has no split {wanted!r}; give --split {' or '.join(splits)}.")
    return wanted, splits[wanted]


def split_name(given: str) -> str:
    """The split that is called so: `dev` is the validation split."""
    return SPLIT_OF_NAME.get(given, given)


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


def check_device(name: str | None) -> None:
    """Raises ValueError when there is no such device."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        reason = "there is no such kind of device" if reason.startswith("Expected one of") else reason
        raise ValueError(f"--device {name}: {reason}. Give cpu, or leave --device out to use a GPU if any.") from None
