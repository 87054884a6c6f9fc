"""Options that several commands share, what they open, and the help of declared ones."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from ..data.formats import FORMATS
from ..installed_models import DEFAULT_MODEL, find_model
from ..model.options_triaffine import PREDICTION_OPTIONS, Option
from ..training.options import OWN_OPTIONS

METAVARS = {int: "N", float: "NUMBER", bool: "BOOL", str: "TEXT", object: "VALUE"}
PAIR = re.compile(r"(.+?)=\s*([\d.eE+-]+)\s*(?:,|$)")
"""Label and threshold; a label may have commas and equals signs, so only a number ends a pair."""
BATCH_SIZE, THRESHOLD, OVERLAP = (PREDICTION_OPTIONS[name] for name in ("batch_size", "threshold", "overlap"))


def described(option: Option) -> str:
    """The meaning of an option, with that of its choices."""
    return option.doc + (f": {described_choices(option.meanings)}" if option.meanings else "") + "."


def describe(option: Option) -> str:
    """The meaning of an option, its choices, and its default."""
    text = described(option)
    default = as_written(option.default) if option.default is not None else option.unset
    if option.required:
        return f"{text} Required."
    return f"{text[:-1]} (default: {default})." if default and option.default is not False else text


def described_choices(meanings: Mapping[str, str]) -> str:
    """`a (its meaning), b or c`."""
    names = [f"{name} ({meaning})" if meaning else name for name, meaning in meanings.items()]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def as_written(value: Any) -> str:
    """A value as on a command line: true, 3e-5, triaffine."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def as_typed(option: Option) -> str:
    """The option and what stands for its value: `--threshold PROBABILITY`."""
    value = option.metavar or ("CHOICE" if option.meanings else METAVARS[option.type])
    value = f"[{value}]" if option.bare else value
    return f"--{option.name}" + ("" if option.type is bool and not option.default else f" {value}")


def read_threshold(text: str) -> float | dict[str, float]:
    """Reads a number, or numbers by label: "0.5" or "protein=0.4,DNA=0.6"."""
    from ..model.checks_triaffine import check_threshold

    try:
        by_label = {label.strip(): float(value) for label, value in PAIR.findall(text)}
        threshold: float | dict[str, float] = by_label if by_label and not PAIR.sub("", text) else float(text)
        check_threshold(threshold)
    except ValueError:
        problem = f"{text!r} is neither a number from 0 to 1 nor one for each label, as in protein=0.4,DNA=0.6."
        raise typer.BadParameter(problem) from None
    return threshold


Model = Annotated[
    str | None,
    typer.Option(help=f"Folder, model of the package, or Hub name.  [default: {DEFAULT_MODEL}]", metavar="MODEL"),
]
Corpus = Annotated[
    list[str], typer.Argument(help="Corpus: a file, a folder with train, dev and test, or several files of one format.")
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1, …  [default: a GPU if there is one]", metavar="DEVICE")
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, max=BATCH_SIZE.most, help=f"{BATCH_SIZE.doc}.  [default: {BATCH_SIZE.unset}]", metavar="N"),
]
TextColumn = Annotated[str, typer.Option(help="Field or column that has the text.")]
EntitiesColumn = Annotated[str, typer.Option(help="Field or column to add.")]
Int8 = Annotated[bool, typer.Option("--int8", help="Run the graph that `export --int8` wrote.")]
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
Overlap = Annotated[Literal["all", "nested", "flat"], typer.Option(help=described(OVERLAP))]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        autocompletion=lambda: sorted(FORMATS),
        help=f"Format of the corpus: {', '.join(sorted(FORMATS))}.  [default: recognized by content and name]",
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


def count(meaning: str) -> Any:
    """An option that is a number of things."""
    return typer.Option(min=1, metavar="N", help=meaning)


Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.", metavar="PORT")]


def open_model(
    name: str | None,
    device: str | None = None,
    splitter: str | None = None,
    int8: bool = False,
    bf16: bool = False,
    **options: Any,
) -> Any:
    """The pipeline of a model, or of a folder that `export` wrote; says what the default model is."""
    found = find_model(name)
    from ..conversion.onnx_predictor import open_pipeline

    if splitter is not None:
        from ..data.splitting import spacy_splitter

        options["text_splitter"] = spacy_splitter(splitter)
    options |= ({"quantize": "int8"} if int8 else {}) | ({"dtype": "bfloat16"} if bf16 else {})
    pipeline = open_pipeline(found, device=device, **options)
    if name is None:
        print(describe_model(found, pipeline.model.config.entity_labels), file=sys.stderr)
    return pipeline


def describe_model(folder: str, labels: Sequence[str]) -> str:
    """Sums up the card of a model in the package in one line."""
    from huggingface_hub import ModelCard

    data = ModelCard.load(Path(folder) / "README.md").data
    f1 = next((result.metric_value for result in data.eval_results or () if result.metric_type == "f1"), None)
    score = f", F1 {100 * f1:.1f}" if f1 else ""
    return f"Model {Path(folder).name} ({', '.join(labels)}; language {data.language}{score}; license {data.license})"


def check_new(output: Path, option: str = "--output") -> None:
    """Raises ValueError if the folder to write exists."""
    if output.exists():
        raise ValueError(f"{option} {output} exists already. Give the name of a new folder.")


class CorpusSplit(NamedTuple):
    """One split of a corpus; if `is_written`, its texts are not words joined by spaces."""

    name: str
    records: Any
    texts: list[Any]
    is_written: bool
    files: tuple[Path, ...]


def load_split(
    corpus: Sequence[str], corpus_format: str | None, split: str | None, processor: Any, max_bad_records: int
) -> CorpusSplit:
    """A split of a corpus, by default the validation split, or the only one, in the words of the corpus or the model.

    The split of a single file, which training reads as `train`, is called what the name of the file tells, or as the
    file.

    Raises:
        ValueError: the corpus has no such split.
    """
    from ..data.loading import read_parts

    wanted = split_name(split or "validation")
    parts = read_parts(corpus, corpus_format, max_bad_records=max_bad_records, only=wanted)
    found = [(part.name or key, key, part) for part in parts for key in part.texts]
    is_any = split is None and len(found) == 1
    matching = [entry for entry in found if is_any or wanted in entry]
    check_splits([] if matching else [wanted], [name for name, _, _ in found], corpus)
    name, key, part = matching[0]
    records = part.sentences(processor.split_words, processor.sentence_splitter, own_words=True)[key]
    return CorpusSplit(name, records, part.texts[key], part.is_written, part.files.files)


def check_splits(wanted: Sequence[str], known: Sequence[str], corpus: Sequence[str]) -> None:
    """Raises ValueError if a corpus lacks some of the splits that are given as --split."""
    if missing := [repr(name) for name in wanted if name not in known]:
        raise ValueError(f"{' '.join(corpus)} has no split {', '.join(missing)}. Give --split {' or '.join(known)}.")


def split_name(given: str) -> str:
    """The name of a split in `load_nested_ner`, where `dev` is `validation`."""
    from ..data.corpus_files import SPLIT_OF_NAME

    return SPLIT_OF_NAME.get(given, given)
