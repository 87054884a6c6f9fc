"""Tunes thresholds by label, and a temperature that calibrates probabilities; saves both in the model.

    triaffine-ner calibrate outputs/demo/corpus --model outputs/demo/model --split validation

Each label gets the threshold with the best F1 on these sentences. Prediction uses them unless you pass another
threshold. Calibrate on sentences that were used neither for training nor for the scores in the model card. The card
shows thresholds and expected calibration error.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..model.options_triaffine import PredictionOptions
from .options import BatchSize, Corpus, Device, Format, MaxBadRecords, Split, load_split


def command(
    corpus: Corpus,
    model: Annotated[Path, typer.Option(help="Folder of a trained model.", metavar="FOLDER")],
    split: Split = None,
    corpus_format: Format = None,
    max_bad_records: MaxBadRecords = 0,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
) -> None:
    if not (model / "config.json").is_file():
        raise ValueError(
            f"--model {model} is not the folder of a trained model, in which thresholds are saved. Give such a folder; "
            "download a model on the Hub first: hf download NAME --local-dir FOLDER."
        )
    from ..evaluation.calibration import calibrate, threshold_table
    from ..evaluation.prediction import unknown_labels, with_context
    from ..model.pipeline_triaffine import NestedNERPipeline
    from ..publishing.repository import save_calibration

    pipeline = NestedNERPipeline(model, device=device)
    name, records, _ = load_split(corpus, corpus_format, split, pipeline.processor, max_bad_records)
    _check_unscored(model, name, records["entities"])
    in_context = with_context(records, pipeline.processor)
    if unknown := unknown_labels(in_context, pipeline.model.config):
        print(f"The model has no label {', '.join(unknown)}; such entities do not count.", file=sys.stderr)
    found = calibrate(pipeline.model, pipeline.processor, in_context, name, batch_size)
    before, after = (f"{100 * error:.2f} %" for error in found.errors)
    save_calibration(model, found)  # before the tables, whose reader may close the pipe
    print(threshold_table(found.labels).text())
    print(f"\nExpected calibration error: {after} with temperature {found.temperature:.3f}, {before} without.")
    print(f"{model}: saved in config.json.")


def _check_unscored(folder: Path, split: str, entities: Sequence[Sequence[Any]]) -> None:
    """Raises ValueError for the training sentences, and those that were scored: thresholds would be too good there.

    They are recognized by the name of their split, or by the numbers of sentences and of entities.
    """
    from ..publishing import RunSummary

    summary = RunSummary.load(folder) or RunSummary()
    scored, numbers = summary.evaluation, (len(entities), sum(map(len, entities)))
    is_known = split not in ("validation", "test") and len(entities) == summary.training_sentences
    if scored is not None:
        is_known |= split == scored.split or numbers == (scored.sentences, scored.scores["gold"])
    if is_known:
        raise ValueError(
            f"The model was trained on these {len(entities)} sentences, or its card has their scores. Thresholds would "
            "be too good there: calibrate on others (--split, or another file)."
        )
