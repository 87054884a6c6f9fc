"""Options that several commands share, what they open, and the help of declared ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from ..data.formats import FORMATS
from ..installed_models import DEFAULT_MODEL, find_and_name
from ..model.options_triaffine import PREDICTION_OPTIONS
from ..model.options_triaffine import Option as DeclaredOption
from ..training.options import OWN_OPTIONS

METAVARS = {int: "N", float: "NUMBER", bool: "BOOL", str: "TEXT", object: "VALUE"}
BATCH_SIZE, THRESHOLD, OVERLAP = (PREDICTION_OPTIONS[name] for name in ("batch_size", "threshold", "overlap"))


def meaning_of(option: DeclaredOption) -> str:
    """Returns the meaning of an option, with its choices and theirs."""
    choices = [f"{name} ({meaning})" if meaning else name for name, meaning in option.meanings.items()]
    return f"{option.doc}: {', '.join(choices)}." if choices else f"{option.doc}."


def describe(option: DeclaredOption) -> str:
    """Returns the meaning of an option with its choices, and its default."""
    text = meaning_of(option)
    default = as_written(option.default) if option.default is not None else option.unset
    if option.required:
        return f"{text} Required."
    return f"{text[:-1]} (default: {default})." if default and option.default is not False else text


def as_written(value: Any) -> str:
    """Returns a value as on a command line: true, 3e-5, triaffine."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def as_typed(option: DeclaredOption) -> str:
    """Returns the option and what stands for its value: `--threshold PROBABILITY`."""
    value = option.metavar or ("CHOICE" if option.meanings else METAVARS[option.type])
    value = f"[{value}]" if option.bare else value
    return f"--{option.name}" + ("" if option.type is bool and not option.default else f" {value}")


def read_threshold(text: str) -> float | dict[str, float]:
    """Reads a number, or numbers by label: "0.5" or "protein=0.4,DNA=0.6"."""
    from ..model.checks_triaffine import check_threshold

    try:
        pairs = [pair.rpartition("=") for pair in text.split(",")]
        threshold = {label.strip(): float(value) for label, _, value in pairs} if "=" in text else float(text)
        check_threshold(threshold)
    except ValueError:
        problem = f"{text!r} is neither a number from 0 to 1 nor one for each label, as in protein=0.4,DNA=0.6."
        raise BadParameter(problem) from None
    return threshold


Model = Annotated[
    str | None, Option(help=f"Folder, model of the package, or Hub name.  [default: {DEFAULT_MODEL}]", metavar="MODEL")
]
Corpus = Annotated[
    list[str], Argument(help="Corpus: a file, a folder with train, dev and test, or several files of one format.")
]
Device = Annotated[str | None, Option(help="cpu, cuda, cuda:1, …  [default: a GPU if there is one]", metavar="DEVICE")]
BatchSize = Annotated[
    int | None,
    Option(min=1, max=BATCH_SIZE.most, help=f"{BATCH_SIZE.doc}.  [default: {BATCH_SIZE.unset}]", metavar="N"),
]
TextColumn = Annotated[str, Option(help="Field or column that has the text.")]
EntitiesColumn = Annotated[str, Option(help="Field or column to add.")]
Bf16 = Annotated[
    bool, Option("--bf16", help="Compute in bfloat16, on a GPU or a CPU that is faster with it; otherwise in float32.")
]
Threshold = Annotated[
    Any,
    Option(
        parser=read_threshold,
        help=f"{THRESHOLD.doc}: 0.5 or protein=0.4,DNA=0.6.  [default: {THRESHOLD.unset}]",
        metavar=THRESHOLD.metavar,
    ),
]
Overlap = Annotated[Literal["all", "nested", "flat"], Option(help=meaning_of(OVERLAP))]
Format = Annotated[
    str | None,
    Option(
        "--format",
        autocompletion=lambda: sorted(FORMATS),
        help=f"Format of the corpus: {', '.join(sorted(FORMATS))}.  [default: recognized by content and name]",
        metavar="FORMAT",
    ),
]
MaxBadRecords = Annotated[int, Option(min=0, help=f"{OWN_OPTIONS['max_bad_records'].doc}.", metavar="N")]
Split = Annotated[str | None, Option(help="train, validation (dev) or test.  [default: validation, or the only split]")]
Port = Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0: a free one.", metavar="PORT")]


def count(meaning: str) -> Any:
    """An option whose value is a number of at least 1."""
    return Option(min=1, metavar="N", help=meaning)


def open_model(name: str | None, device: str | None = None, bf16: bool = False, **options: Any) -> Any:
    """Opens the pipeline of a model, or of a folder that `export` wrote; without a name, says which one it is."""
    found = find_and_name(name)
    from ..conversion.onnx import open_pipeline

    return open_pipeline(found, device=device, dtype="bfloat16" if bf16 else None, **options)


def check_new(output: Path | None) -> None:
    """Raises ValueError if the folder to write exists."""
    if output is not None and output.exists():
        raise ValueError(f"{output} exists already. Give the name of a new folder.")


def load_split(
    corpus: Sequence[str], corpus_format: str | None, split: str | None, processor: Any, max_bad_records: int
) -> tuple[str, Any, list[Any]]:
    """Reads a split of a corpus, by default the validation split, or the only one.

    A single file, which training would read as `train`, is the split in the file's name, or else is called as the file.

    Returns:
        The name of the split; its sentences in the words of the corpus or else the model's; and its texts, none if the
        corpus has words alone.
    """
    from ..data.loading import SPLIT_OF_NAME, read_parts

    wanted = SPLIT_OF_NAME.get(split or "validation", split or "validation")
    parts = read_parts(corpus, corpus_format, max_bad_records=max_bad_records, only=wanted)
    found = {part.name or key: (part, key) for part in parts for key in part.texts}
    if split is None and len(found) == 1:
        (wanted,) = found
    if wanted not in found:
        raise ValueError(f"{' '.join(corpus)} has no split {wanted!r}. Give --split {' or '.join(found)}.")
    part, key = found[wanted]
    records = part.sentences(processor.split_words, processor.sentence_splitter, own_words=True)[key]
    return wanted, records, part.texts[key] if part.is_written else []
