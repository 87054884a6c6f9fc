"""The model card, README.md of a repository, made from the configuration of a model and the facts of its run.

The text is in `card.md.jinja`, that of a recipe in `recipe_card.md.jinja`, the facts come from a [`RunSummary`]. Values
enter the text through `inline_code`, `code_block` and `Table` only, so that no name can break it.
"""

import contextlib
import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from ..drawing import draw_entities
from ..drawing.safe_text import inline_code, markdown_text
from ..drawing.tables import Cell, Code, Strong, Table
from ..evaluation.calibration import Calibration, threshold_table
from ..evaluation.scores import ALL, PARTS_NOTE, PARTS_TITLE, RATIOS, Scores, percent, score_table, summary_metrics
from ..files import write_text
from ..model.configuration_triaffine import TriaffineConfig
from ..model.repository_triaffine import REMOTE_CODE_FILES
from ..nesting import nested_spans
from .run_summary import Epoch, Example, RunSummary

CARD_NAME = "README.md"
TAGS = ("nested-ner", "named-entity-recognition", "span-classification", "triaffine")
DRAWING_WIDTH = 88  # columns of a code block that the Hub shows without scrolling
EPOCH_COLUMNS = ("Epoch", "Update", "Training loss", "Validation loss")

USAGE = """\
from transformers import pipeline

ner = pipeline("token-classification", model={name}, trust_remote_code=True)
text = {text}
for entity in ner(text):
    print(entity["start"], entity["end"], entity["entity_group"], entity["word"])

ner([text, "Another text."], batch_size=32)  # also generators and data sets
ner(text, threshold=0.9)  # only entities of at least this probability
ner(text, overlap="nested")  # none that cross; "flat": none that overlap"""


def build_model_card(
    config: TriaffineConfig,
    *,
    model_name: str,
    summary: RunSummary | None = None,
    tags: Sequence[str] | str | None = None,
    purpose: str | None = None,
) -> ModelCard:
    """Returns the card of one model repository.

    Args:
        model_name: the repository's Hub id, `"user/name"`, or another name, for title, usage and results.
        summary: the facts known of the run. Without one, the card says "Not known" instead of numbers.
        purpose: for the short card of a recipe, what it is for, in Markdown. `summary` then has the recipe's name and
            settings.
    """
    run = (summary or RunSummary()).of_model(config)
    labels = config.entity_labels
    shown = _choose_example(run.examples)
    return ModelCard.from_template(
        _metadata(model_name, run, [tags] if isinstance(tags, str) else tags or []),
        template_path=str(Path(__file__).with_name("card.md.jinja" if purpose is None else "recipe_card.md.jinja")),
        config=config,
        run=run,
        name=model_name,
        title=markdown_text(model_name.split("/")[-1]),
        purpose=(purpose or "").strip(),
        labels=labels,
        shown=shown,
        drawing=draw_entities(shown.text, shown.entities, DRAWING_WIDTH),
        usage=USAGE.format(name=_literal(model_name), text=_literal(shown.text)),
        page=shlex.join(["triaffine-ner", "page", "--model", model_name]),
        printed="\n".join("{start} {end} {entity_group} {word}".format_map(entity) for entity in shown.entities),
        encoder=_describe_encoder(config),
        tables=_tables(run, labels),
        files=REMOTE_CODE_FILES,
        code=inline_code,
        codes=lambda values: ", ".join(map(inline_code, values)),
        code_block=code_block,
        percent=percent,
        parts_title=PARTS_TITLE,
        parts_note=PARTS_NOTE,
    )


def card_of_folder(folder: Path, name: str = "", tags: Sequence[str] | str | None = None) -> str:
    """Returns the text of the card of a saved model, by default under the name of its folder."""
    config, summary = TriaffineConfig.from_pretrained(folder), RunSummary.load(folder)
    return str(build_model_card(config, model_name=name or repository_name(folder), summary=summary, tags=tags))


def repository_name(folder: str | Path) -> str:
    """The name of a model that is not on the Hub: that of its folder, in characters that the Hub allows."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(folder).resolve().name).strip("-")
    return name[:96].strip("-") or "model"


def has_own_card(folder: Path) -> bool:
    """True if a model's folder has a card that differs from the one that its run wrote, whatever the folder's name."""
    if not (folder / CARD_NAME).is_file():
        return False
    text = (folder / CARD_NAME).read_text(encoding="utf-8", errors="replace")
    named = re.search(r'"token-classification", model="([^"/]+)"', text)
    return text != card_of_folder(folder, named[1] if named else "")


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Saves temperature and thresholds in the model's configuration, and their origin in its run's summary and card."""
    is_own = has_own_card(folder)
    config = TriaffineConfig.from_pretrained(folder)
    config.temperature, config.label_thresholds = calibration.temperature, calibration.thresholds or None
    summary = RunSummary.load(folder) or RunSummary()
    summary.calibration = calibration
    summary.save(folder)
    config.save_pretrained(folder)
    if not is_own:
        write_text(folder / CARD_NAME, card_of_folder(folder))


def _metadata(model_name: str, run: RunSummary, tags: Sequence[str]) -> ModelCardData:
    """The front matter, which the Hub reads and shows beside the text."""
    if run.base_model is not None:
        validate_repo_id(run.base_model)
    datasets = [name.strip() for name in (run.dataset or "").split(",")]
    return ModelCardData(
        language=run.language,
        license=run.license,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=list(dict.fromkeys([*TAGS, *tags])),
        base_model=run.base_model,
        datasets=datasets if all(map(_is_linked, datasets)) else None,
        metrics=list(RATIOS),
        widget=[{"text": _one_line(example.text)} for example in run.examples] or None,
        model_name=model_name if run.evaluation else None,
        eval_results=_eval_results(run),
    )


def _eval_results(run: RunSummary) -> list[EvalResult] | None:
    """The scores of all entities, for the Hub's comparison of models."""
    if run.evaluation is None:
        return None
    dataset = _one_line(run.dataset or "") or "unnamed data set"
    return [
        EvalResult(
            task_type="token-classification",
            task_name="Nested named entity recognition",
            dataset_type=dataset,
            dataset_name=dataset,
            dataset_split=_one_line(run.evaluation.split),
            metric_type=ratio,
            metric_value=float(run.evaluation.scores[ratio]),
        )
        for ratio in RATIOS
    ]


def _is_linked(name: str) -> bool:
    """True for the id of a data set, which the Hub links: it has an owner. Titles must not be linked."""
    with contextlib.suppress(HFValidationError):
        validate_repo_id(name)
        return "/" in name
    return False


def _tables(run: RunSummary, labels: Sequence[str]) -> dict[str, Table]:
    """The tables of a card by name; those of scores only if there are scores."""
    sentences = "" if run.training_sentences is None else f"{run.training_sentences:,} "
    label_rows = [[Code(name), run.label_counts.get(name)] for name in labels]
    settings = {"recipe": run.recipe or None} | run.settings
    known = [(name, value) for name, value in settings.items() if value is not None]
    setting_rows = [[Code(name), Code(f"{value:g}" if isinstance(value, float) else value)] for name, value in known]
    seconds = round(run.training_seconds or 0)
    time = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} h"
    time += " since the run was last resumed" if run.resumed else ""
    processes = f"{run.processes}, on {f'{run.gpus} GPU' if run.gpus else 'the CPU'}"
    machine_rows: list[list[Cell]] = [["Training time", time], ["Processes", processes]]
    machine_rows += [[Code(name), Code(value)] for name, value in (run.hardware | run.versions).items()]
    tables = {
        "labels": Table(["Label", f"In the {sentences}training sentences"], label_rows),
        "epochs": _epoch_table(run.training_table),
        "settings": Table(("Setting", "Value"), setting_rows),
        "machine": Table(("", "In this run"), machine_rows),
    }
    if run.calibration is not None:
        tables["thresholds"] = threshold_table(run.calibration.labels)
    if run.evaluation is not None:
        scores, raw_text = Scores(run.evaluation.scores), run.evaluation.raw_text
        if raw_text is not None:
            tables["by_input"] = score_table("Input", [("given words", scores), ("raw text", raw_text)])
        whole = (Strong(ALL.title), scores)
        by_label = [(Code(name), row) for name, row in scores["by_label"].items()]
        by_part = [(part.title, row) for part, row in scores.by_part().items() if part is not ALL]
        by_length = [(Code(name), row) for name, row in run.evaluation.by_length.items()]
        tables["by_label"] = score_table("Label", [whole, *by_label])
        tables["by_part"] = score_table("Entities", [whole, *by_part])
        tables["by_length"] = score_table("Words", [whole, *by_length])
    return tables


def _epoch_table(epochs: Sequence[Epoch]) -> Table:
    rows = []
    for row in epochs:
        losses = (row.training_loss, row.validation_loss)
        cells = [
            f"{row.epoch:g}",
            row.update,
            *(None if loss is None or not math.isfinite(loss) else f"{loss:.4f}" for loss in losses),
            *(percent(row.scores.get(name)) for name in summary_metrics()),
        ]
        rows.append([Strong(cell) if row.kept and cell is not None else cell for cell in cells])
    titles = (f"{title[0].upper()}{title[1:]}" for title in summary_metrics().values())
    return Table([*EPOCH_COLUMNS, *titles], rows)


def _choose_example(examples: Sequence[Example]) -> Example:
    """The first example with nested entities, else with any; without any, a placeholder."""
    return max(
        (example for example in examples if example.entities),
        key=lambda example: bool(nested_spans((entity["start"], entity["end"]) for entity in example.entities)),
        default=Example("One sentence, or a long text."),
    )


def _describe_encoder(config: Any) -> str:
    encoder = config.encoder_config
    sizes = (("layers", getattr(encoder, "num_hidden_layers", None)), ("wide", getattr(encoder, "hidden_size", None)))
    return ", ".join([inline_code(encoder.model_type), *(f"{size} {name}" for name, size in sizes if size is not None)])


def code_block(content: str, language: str = "") -> str:
    """A fenced code block, with a fence longer than any run of backticks in the content."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def _one_line(text: str) -> str:
    """`text` with single spaces as white space: YAML silently drops some line ends of Unicode."""
    return " ".join(text.split())


def _literal(text: str) -> str:
    """The text as a Python literal, quoted as a formatter would."""
    return repr(text) if '"' in text else f'"{repr(text)[1:-1]}"'
