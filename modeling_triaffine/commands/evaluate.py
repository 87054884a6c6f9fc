"""`evaluate` and `calibrate`: a trained model on a split of a corpus."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..installed_models import DEFAULT_MODEL
from ..model.options_triaffine import PredictionOptions
from . import options as shared


def evaluate(
    corpus: shared.Corpus,
    model: shared.Model = None,
    split: shared.Split = None,
    corpus_format: shared.Format = None,
    max_bad_records: shared.MaxBadRecords = 0,
    threshold: shared.Threshold = None,
    overlap: shared.Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    device: shared.Device = None,
    bf16: shared.Bf16 = False,
    output: Annotated[Path | None, Option(help="JSON file for all scores, with null where tables have –.")] = None,
    report: Annotated[Path | None, Option(help="New folder for the report.")] = None,
    compare: Annotated[str | None, Option(help="Another model to compare with.", metavar="MODEL")] = None,
) -> None:
    """Scores a trained model on a corpus, and analyzes its errors.

        triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --split test
        triaffine-ner evaluate outputs/demo/corpus --model outputs/demo/model --report outputs/demo/report
        triaffine-ner evaluate GENIAcorpus3.02.xml --model outputs/genia --output scores.json

    Prints precision, recall and F1 on the words of the corpus, for all entities, by label and for parts such as nested
    entities, and the kinds of errors. If the corpus has its text, raw text is scored, too: the model splits sentences
    and words itself, and an entity is correct if its characters and label are correct.

    --report writes a new folder with report.html (a single file) and report.json: scores by label, length and depth of
    nesting, errors by label, the sentences with the most errors, and with --compare a paired bootstrap test against
    another model.
    """
    shared.check_new(report)
    from ..evaluation.analysis import analyse, summarize, write_report
    from ..evaluation.prediction import score_raw_text
    from ..evaluation.scores import RATIOS, percentages, with_nulls
    from ..files import new_folder, open_output

    pipeline = shared.open_model(model, device, bf16)
    name, records, texts = shared.load_split(corpus, corpus_format, split, pipeline.processor, max_bad_records)
    models = [(model or DEFAULT_MODEL, pipeline)]
    if compare:
        models.append((compare, shared.open_model(compare, device, bf16)))
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
    corpus_name = corpus[0] if corpus[0].endswith(name) else f"{corpus[0]}, {name}"
    with open_output(output) as written:  # before the analysis: what cannot be written is known at once
        analysis = analyse(models, records, corpus_name, **decoding)
        scores = {"given_words": analysis["scores"]}
        if texts:
            scores["raw_text"] = score_raw_text(pipeline, texts, **decoding)
        if report is not None:
            with new_folder(report) as folder:
                write_report(analysis, folder)
        if output is not None:
            json.dump(with_nulls(scores), written, indent=2)
    shown = sys.stderr if str(output) == "-" else sys.stdout  # where JSON goes to standard output
    print(summarize(analysis), file=shown)  # all is written: a reader of the tables may close the pipe
    if "raw_text" in scores:
        ratios = zip(RATIOS.values(), percentages(scores["raw_text"]), strict=True)
        print("Raw text:", ", ".join(f"{name} {ratio or '–'}" for name, ratio in ratios), file=shown)
    if report is not None:
        print(f"The report: {report / 'report.html'}", file=shown)


def calibrate(
    corpus: shared.Corpus,
    model: Annotated[Path, Option(help="Folder of a trained model.", metavar="FOLDER")],
    split: shared.Split = None,
    corpus_format: shared.Format = None,
    max_bad_records: shared.MaxBadRecords = 0,
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    device: shared.Device = None,
) -> None:
    """Tunes thresholds by label, and a temperature that calibrates probabilities; saves both in the model.

        triaffine-ner calibrate outputs/demo/corpus --model outputs/demo/model --split validation

    Each label gets the threshold with the best F1 on these sentences. Prediction uses them unless you pass another
    threshold. Calibrate on sentences that were used neither for training nor for the scores in the model card. The card
    shows thresholds and expected calibration error.
    """
    if not (model / "config.json").is_file():
        remedy = "Thresholds are saved in it: download one on the Hub first, hf download NAME --local-dir FOLDER."
        raise ValueError(f"--model {model} is not the folder of a trained model. {remedy}")
    from ..evaluation import calibration
    from ..evaluation.prediction import unknown_labels, with_context
    from ..model.pipeline_triaffine import NestedNERPipeline
    from ..publishing import RunSummary
    from ..publishing.model_card import save_calibration

    pipeline = NestedNERPipeline(model, device=device)
    name, records, _ = shared.load_split(corpus, corpus_format, split, pipeline.processor, max_bad_records)
    # They are recognized by the name of their split, or by the numbers of sentences and entities.
    summary = RunSummary.load(model) or RunSummary()
    scored, numbers = summary.evaluation, (len(records), sum(map(len, records["entities"])))
    is_known = name not in ("validation", "test") and len(records) == summary.training_sentences
    if scored is not None:
        is_known |= name == scored.split or numbers == (scored.sentences, scored.scores["gold"])
    if is_known:
        problem = f"The model was trained on these {len(records)} sentences, or its card has their scores"
        raise ValueError(f"{problem}, so thresholds would be too good: calibrate on others (--split, another file).")
    in_context = with_context(records, pipeline.processor)
    if unknown := unknown_labels(in_context, pipeline.model.config):
        print(f"The model has no label {', '.join(unknown)}; such entities do not count.", file=sys.stderr)
    found = calibration.calibrate(pipeline.model, pipeline.processor, in_context, name, batch_size)
    before, after = (f"{100 * error:.2f} %" for error in found.errors)
    save_calibration(model, found)  # before the tables, whose reader may close the pipe
    print(calibration.threshold_table(found.labels).text())
    print(f"\nExpected calibration error: {after} with temperature {found.temperature:.3f}, {before} without.")
    print(f"{model}: saved in config.json.")
