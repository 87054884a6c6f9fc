"""Turns a checkpoint of the published implementation into a model of this package, without running its pickle.

    python examples/convert_published.py best_epoch.pth --corpus genia --encoder dmis-lab/biobert-v1.1 \\
        --vocabularies data/genia91 --output outputs/published-genia

Read are the full model (SpanAttModelV3) and the ablations (SpanModel). The checkpoint is a whole model, pickled; of it
only tensors and settings are taken. It does not say what its labels are called, which context it was trained with
(--corpus, or --labels and --context) and which words its embeddings are of (--vocabularies). The new folder, model and
processor, appears when it is whole.
"""

import argparse
from pathlib import Path

from modeling_triaffine.conversion import CORPORA, convert_published
from modeling_triaffine.errors import ending_plainly
from modeling_triaffine.files import new_folder
from modeling_triaffine.model.configuration_triaffine import CHOICES


def main() -> None:
    with ending_plainly():
        convert(parse_arguments())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("checkpoint", type=Path, help="the .pth file of a published training")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--corpus", choices=CORPORA, help="published corpus it was trained on: its labels and context")
    which.add_argument("--labels", nargs="+", metavar="LABEL", help="entity labels in the order of their numbers")
    parser.add_argument("--context", choices=CHOICES["context"], help="default: the corpus', or none with --labels")
    parser.add_argument("--encoder", required=True, help="folder or Hub name of the encoder it was trained on")
    parser.add_argument("--vocabularies", type=Path, help="folder with word2id.json, pos2id.json and char2id.json")
    parser.add_argument("--output", type=Path, required=True, help="new folder for model and processor")
    return parser.parse_args()


def convert(arguments: argparse.Namespace) -> None:
    if arguments.output.exists():
        raise ValueError(f"--output {arguments.output} is there already; give the name of a new folder.")
    corpus = CORPORA.get(arguments.corpus)
    labels = corpus.labels if corpus else arguments.labels
    context = arguments.context or (corpus.context if corpus else "none")
    converted = convert_published(
        arguments.checkpoint, arguments.encoder, labels, vocabularies=arguments.vocabularies, context=context
    )
    with new_folder(arguments.output) as folder:
        converted.model.save_pretrained(folder)
        converted.processor.save_pretrained(folder)
    parameters = sum(weights.numel() for weights in converted.model.parameters())
    print(f"{arguments.output}: {parameters:,} parameters, labels {', '.join(labels)}.")
    if converted.left_out:
        print(f"Left out, for they predict nothing: {', '.join(converted.left_out)}.")


if __name__ == "__main__":
    main()
