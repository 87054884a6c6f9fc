"""A small corpus, and the analysis of a model on it."""

from typing import Any

from modeling_triaffine.evaluation.analysis import NamedModel, analyse
from tests.helpers.micro_training import micro_dataset
from tests.helpers.scored import entities
from tests.helpers.tiny import tiny_model, tiny_processor

# A model that finds something.
FINDS = {"seed": 3, "max_candidates": 6, "triaffine_init_std": 3.0}
HOSTILE = "<script>alert(1)</script> | `x` & $y$"


def make_records(hostile=""):
    sentences = [
        (
            ["The", "IL2", "gene", "binds", "protein", "!"],
            entities((1, 3, "DNA"), (1, 2, "protein"), (4, 5, "protein")),
        ),
        (["DNA"], entities((0, 1, "DNA"))),
        (["It", "works", hostile or "."], entities((0, 3, hostile)) if hostile else []),
        (["gene", "of", "the", "protein", "gene"], entities((0, 5, "DNA"), (3, 5, "DNA"), (3, 4, "RNA"))),
    ]
    return [
        {"id": f"s{number}", "doc_id": "d", "sent_id": number, "tokens": tokens, "pos": [], "entities": gold}
        for number, (tokens, gold) in enumerate(sentences)
    ]


def analyse_hostile(encoder: str) -> dict[str, Any]:
    """Of a corpus whose texts and types are full of markup, with another model."""
    subject = NamedModel(HOSTILE, tiny_model(encoder, **FINDS), tiny_processor(encoder))
    other = NamedModel("other", tiny_model(encoder, **FINDS | {"seed": 4}), tiny_processor(encoder))
    corpus = micro_dataset(make_records(HOSTILE))
    return analyse(subject, corpus, "corpus, test", counts=[2, 6, 40], other=other)
