"""Finds thresholds by label, and a temperature that makes probabilities mean what they say; saves them in the model.

    triaffine-ner calibrate --model outputs/demo/model outputs/demo/corpus --split validation
    triaffine-ner calibrate --model outputs/genia my_sentences.jsonl --precision 0.9

Each label gets the threshold of best F1 on these sentences, or with --precision (--recall) the one of highest recall
(precision) that reaches it. Prediction uses them wherever it is given no other threshold. The sentences must not be
those that the model was trained on, nor those that its card's scores are from. The card shows thresholds and expected
calibration error; with the extra `plot` it has a diagram.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import BatchSize, Corpus, Device, Format, Model, Split, check_device, load_split

if TYPE_CHECKING:
    from ..evaluation.calibration import Goal


def command(
    corpus: Corpus,
    model: Model,
    split: Split = None,
    precision: Annotated[
        float | None, typer.Option(min=0, max=1, help="Precision that every label is to reach.", metavar="RATIO")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(min=0, max=1, help="Recall that every label is to reach.", metavar="RATIO")
    ] = None,
    corpus_format: Format = None,
    batch_size: BatchSize = 32,
    device: Device = None,
) -> None:
    folder = Path(model)
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"--model {model} is no folder with a config.json, in which thresholds could be saved; give a model's "
            "folder. One on the Hub has to be downloaded first: hf download NAME --local-dir FOLDER."
        )
    check_device(device)
    from ..evaluation.calibration import calibrate
    from ..evaluation.prediction import unknown_labels, with_context
    from ..evaluation.reliability import reliability_table, threshold_table
    from ..model.pipeline_triaffine import NestedNERPipeline
    from ..publishing.calibration import check_unscored, save_calibration

    goal = _goal(precision, recall)
    name, records = load_split(corpus, corpus_format, split)
    pipeline = NestedNERPipeline(model=model, device=device)
    check_unscored(folder, name, records["entities"])
    trained: Any = pipeline.model
    in_context = with_context(records, pipeline.processor)
    if unknown := unknown_labels(in_context, trained.config):
        print(f"The model has no label {', '.join(unknown)}; such entities do not count.", file=sys.stderr)
    found = calibrate(trained, pipeline.processor, in_context, name, goal, batch_size)
    save_calibration(folder, found)
    before, after = (f"{100 * error:.2f} %" for error in found.errors)
    print(threshold_table(found.labels).text())
    print(f"\n{reliability_table(found.bins_before, found.bins_after).text()}")
    print(f"\nExpected calibration error: {after} with temperature {found.temperature:.3f}, {before} without.")
    print(f"{folder}: saved in config.json.")


def _goal(precision: float | None, recall: float | None) -> "Goal":
    from ..evaluation.calibration import Goal

    if precision is not None and recall is not None:
        raise ValueError("Give --precision or --recall, not both: one threshold cannot be chosen for two goals.")
    if precision is not None:
        return Goal("precision", precision)
    return Goal() if recall is None else Goal("recall", recall)
