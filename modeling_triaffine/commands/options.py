"""Options that several commands share, and their checks."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.formats import FORMATS
from ..model.kinds_triaffine import OVERLAPS
from ..model.options_triaffine import PREDICTION_OPTIONS
from ..training.options import OWN_OPTIONS
from .choices import choice

PAIR = re.compile(r"(.+?)=\s*([\d.eE+-]+)\s*(?:,|$)")
"""Label and threshold; a label may have commas and equals signs, so only a number ends a pair."""


def check_device(name: str | None) -> str | None:
    """The name; raises ValueError unless there is such a device."""
    if name is None:  # without the import of torch
        return None
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        reason = "there is no such kind of device" if reason.startswith("Expected one of") else reason
        raise ValueError(
            f"--device {name}: {reason}. Give cpu, or leave --device out to use a GPU if there is one."
        ) from None
    return name


Model = Annotated[str, typer.Option(help="Folder or Hub name of a trained model.", metavar="MODEL")]
Corpus = Annotated[
    list[str], typer.Argument(help="Corpus: a file, a folder with train, dev and test, or several files of one format.")
]
Device = Annotated[
    str | None,
    typer.Option(
        callback=check_device, help="cpu, cuda, cuda:1, …  [default: a GPU if there is one]", metavar="DEVICE"
    ),
]
BATCH_SIZE, THRESHOLD, OVERLAP = (PREDICTION_OPTIONS[name] for name in ("batch_size", "threshold", "overlap"))
BatchSize = Annotated[
    int, typer.Option(min=BATCH_SIZE.least, max=BATCH_SIZE.most, help=f"{BATCH_SIZE.doc}.", metavar="N")
]
TextsFormat = Annotated[
    str | None,
    choice(
        "Format of the input",
        {"text": "one text per line", "jsonl": "one JSON object per line"},
        "--format",
        unset="by its name",
    ),
]
TextColumn = Annotated[str, typer.Option(help="Field of a JSON line that has the text.")]


def read_threshold(text: str) -> float | dict[str, float]:
    """A number, or numbers by label: "0.5" or "protein=0.4,DNA=0.6"; raises typer.BadParameter for anything else."""
    from ..model.checks_triaffine import check_threshold

    try:
        if "=" in text and PAIR.sub("", text):
            raise ValueError
        pairs = [(label.strip(), float(value)) for label, value in PAIR.findall(text)]
        if len(by_label := dict(pairs)) < len(pairs):
            raise ValueError
        threshold = by_label or float(text)
        check_threshold(threshold)
        return threshold
    except ValueError:
        problem = f"{text!r} is neither a number from 0 to 1 nor one for each label, as in protein=0.4,DNA=0.6."
        raise typer.BadParameter(problem) from None


Int8 = Annotated[
    bool, typer.Option("--int8", help="Compute the encoder's linear layers in int8, on a CPU; needs the extra onnx.")
]
Bf16 = Annotated[
    bool,
    typer.Option("--bf16", help="Compute in bfloat16, on a GPU or a CPU that is faster with it; otherwise in float32."),
]
Threshold = Annotated[
    Any,
    typer.Option(
        parser=read_threshold,
        help=f"{THRESHOLD.doc}: 0.5 or protein=0.4,DNA=0.6.  [default: {THRESHOLD.unset}]",
        metavar=THRESHOLD.metavar,
    ),
]
Overlap = Annotated[
    str,
    choice(
        OVERLAP.doc,
        {name: policy.meaning for name, policy in OVERLAPS.items()},
        metavar=OVERLAP.metavar,
    ),
]
Format = Annotated[
    str | None,
    choice(
        "Format of the corpus",
        lambda: dict.fromkeys(sorted(FORMATS), ""),
        "--format",
        unset="recognized by content and name",
        metavar="FORMAT",
    ),
]
MaxBadRecords = Annotated[int, typer.Option(min=0, help=f"{OWN_OPTIONS['max_bad_records'].doc}.", metavar="N")]
Splitter = Annotated[
    str | None,
    typer.Option(
        help="spaCy pipeline that splits texts into sentences, such as xx_sent_ud_sm.  [default: the model's rules]",
        metavar="PIPELINE",
    ),
]
Split = Annotated[
    str | None, typer.Option(help="train, validation (dev) or test.  [default: validation, or the only split]")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.", metavar="PORT")]


def precision(int8: bool, bf16: bool) -> dict[str, Any]:
    """Keywords of the pipeline, which refuses both together."""
    return ({"quantize": "int8"} if int8 else {}) | ({"dtype": "bfloat16"} if bf16 else {})


def text_splitter(name: str | None) -> Any:
    """The sentence splitter of the spaCy pipeline with this name; None without a name."""
    if name is None:
        return None
    from ..data.splitting import spacy_splitter

    return spacy_splitter(name)


def check_new(output: Path) -> None:
    """Raises ValueError if the folder to write, the value of --output, exists."""
    if output.exists():
        raise ValueError(f"--output {output} exists already. Give the name of a new folder.")
