"""Scores a trained model: on a corpus' given words and, where the corpus has its raw text, on that by characters.

python examples/score.py --model outputs/genia GENIAcorpus3.02.xml --split validation
python examples/score.py --model outputs/demo/model outputs/demo/corpus --split test
"""

import argparse
import json
import sys
from pathlib import Path

from modeling_triaffine import NestedNERPipeline, load_nested_ner
from modeling_triaffine.data import add_context, detect_format, read_genia_documents
from modeling_triaffine.evaluation.prediction import predict_words, score_raw_text
from modeling_triaffine.evaluation.scoring import format_scores, score_entities
from modeling_triaffine.scripts import check_device, exit_with_message, open_output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="corpus: a JSON-lines file, a folder of splits, or GENIA's XML")
    parser.add_argument("--model", required=True, help="folder or Hub name of a trained model")
    parser.add_argument("--split", default="validation", help="train, validation (default) or test")
    parser.add_argument("--format", help="of the corpus (default: told from its name and content)")
    parser.add_argument("--batch_size", type=int, default=32, help="sentences that run together")
    parser.add_argument("--device", help="cpu, cuda … (default: a GPU where there is one)")
    parser.add_argument("--output", type=Path, help="file for all scores as JSON")
    arguments = parser.parse_args()
    try:
        check_device(arguments.device)
        scores = evaluate(arguments)
        for name, of_words in scores.items():
            print(f"{name.replace('_', ' ').capitalize()}:\n{format_scores(of_words)}\n")
        if arguments.output:
            with open_output(arguments.output) as output:
                json.dump(scores, output, indent=2)
    except (ValueError, OSError) as error:
        exit_with_message(error)


def evaluate(arguments: argparse.Namespace) -> dict[str, dict]:
    """Scores by the kind of input: "given_words" and, for GENIA's XML, "raw_text"."""
    pipeline = NestedNERPipeline(model=arguments.model, device=arguments.device, batch_size=arguments.batch_size)
    splits = load_nested_ner(arguments.data, arguments.format)
    if arguments.split not in splits:
        raise ValueError(f"{arguments.data} has no split {arguments.split!r}; it has {', '.join(splits)}.")
    processor = pipeline.processor
    records = list(add_context(splits[arguments.split], processor.context, processor.max_subwords))
    unknown = {entity["type"] for record in records for entity in record["entities"]} - set(
        pipeline.model.config.label2id
    )
    if unknown:
        print(f"The model has no label {', '.join(sorted(unknown))}: such entities are missed.", file=sys.stderr)
    found = predict_words(pipeline.model, processor, records, arguments.batch_size)
    scores = {"given_words": score_entities(found, [record["entities"] for record in records])}
    path = Path(arguments.data)
    if path.is_file() and (arguments.format or detect_format(path).name) == "genia":
        documents = (one for one in read_genia_documents(arguments.data) if one["split"] == arguments.split)
        scores["raw_text"] = score_raw_text(pipeline, documents)
    return scores


if __name__ == "__main__":
    main()
