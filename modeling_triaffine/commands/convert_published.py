r"""Converts a checkpoint of the published implementation to a model of this package, without executing its pickle.

    triaffine-ner convert-published best_epoch.pth --corpus genia --encoder dmis-lab/biobert-v1.1 \
        --vocabularies data/genia91 --output outputs/published-genia

Converts the full model (SpanAttModelV3) and the ablations (SpanModel). The checkpoint is a pickled model; only its
tensors and settings are read. It does not contain the names of its labels and the context it was trained with (pass
--corpus, or --labels and --context), or the words of its embeddings (pass --vocabularies).
"""

from pathlib import Path
from typing import Annotated

import typer

from ..model.options_triaffine import MODEL_OPTIONS
from .choices import choice
from .options import check_new

PUBLISHED_CORPORA = {"ace04": "ACE 2004", "ace05": "ACE 2005", "genia": "GENIA", "kbp17": "TAC KBP 2017"}


def command(
    checkpoint: Annotated[Path, typer.Argument(help="The .pth file that the published code saved.")],
    encoder: Annotated[str, typer.Option(help="Folder or Hub name of the checkpoint's encoder.")],
    output: Annotated[Path, typer.Option(help="New folder for model and processor.")],
    corpus: Annotated[
        str | None, choice("Corpus it was trained on, which determines labels and context", PUBLISHED_CORPORA)
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --corpus: the checkpoint's entity labels, in order.", metavar="LABEL …"),
    ] = None,
    context: Annotated[
        str | None,
        choice("Context around a sentence", MODEL_OPTIONS["context"].meanings, unset="that of --corpus, else none"),
    ] = None,
    vocabularies: Annotated[
        Path | None, typer.Option(help="Folder with word2id.json, pos2id.json and char2id.json.")
    ] = None,
) -> None:
    if (corpus is None) == (labels is None):
        raise ValueError("Give either --corpus or --labels. See `triaffine-ner convert-published --help`.")
    check_new(output)
    from ..conversion import CORPORA, convert_published
    from ..files import new_folder

    published = CORPORA.get(corpus or "")
    names = list(published.labels) if published else labels or []
    converted = convert_published(
        checkpoint,
        encoder,
        names,
        vocabularies=vocabularies,
        context=context or (published.context if published else "none"),
    )
    with new_folder(output) as folder:
        converted.model.save_pretrained(folder)
        converted.processor.save_pretrained(folder)
    parameters = sum(weights.numel() for weights in converted.model.parameters())
    print(f"{output}: {parameters:,} parameters, labels {', '.join(names)}.")
    if converted.left_out:
        print(f"Left out, because prediction does not need them: {', '.join(converted.left_out)}.")
