"""Kinds of attention and scoring: what is declared of one is what its module has, and what configurations ask for."""

import itertools

import pytest
import torch

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.factors_triaffine import BIAFFINE_MODULES, PART_MODULES
from modeling_triaffine.model.kinds_triaffine import ATTENTIONS, SCORINGS
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead

pytestmark = pytest.mark.contract

PAIRS = list(itertools.product(ATTENTIONS, SCORINGS))
SIZES = {"num_labels": 3, "hidden_size": 6, "triaffine_dim": 4, "max_candidates": 2}


def allowed():
    """The combinations that a configuration allows, by attention, scoring and whether they share W and V."""
    configs = {}
    for attention, scoring in PAIRS:
        for cross_span, shares in ((False, True), (True, True), (True, False)):
            fields = {"attention": attention, "scoring": scoring, "cross_span": cross_span, "share_triaffine": shares}
            try:
                configs[attention, scoring, cross_span and shares] = TriaffineConfig(**SIZES, **fields)
            except ValueError:
                continue
    return configs


CONFIGS = allowed()


def test_every_kind_has_a_module_and_is_part_of_a_head():
    kinds = [*ATTENTIONS.items(), *SCORINGS.items()]
    for modules, reads_words in ((PART_MODULES, True), ({"none": None, **BIAFFINE_MODULES}, False)):
        declared = {name for name, kind in kinds if kind.reads_words == reads_words}
        where = "add it to the modules in factors_triaffine.py, or declare it in kinds_triaffine.py"
        assert modules.keys() ^ declared == set(), where
    attentions, scorings, _ = map(set, zip(*CONFIGS, strict=True))
    assert (attentions, scorings) == (set(ATTENTIONS), set(SCORINGS))


@pytest.mark.parametrize("name", CONFIGS, ids=str)
def test_a_module_has_what_its_kind_declares(name):
    head = TriaffineSpanHead(CONFIGS[name])
    attention, scoring = (kinds[one] for kinds, one in zip((ATTENTIONS, SCORINGS), name[:2], strict=True))
    parts = {part.rsplit(".", 1)[0] for part, _ in head.named_parameters()}

    def has(prefix):
        return any(part.startswith(prefix) for part in parts)

    assert has("attention.boundaries") == attention.has_boundaries
    assert has("attention.triaffine") == attention.has_tensor
    assert has("scoring.triaffine") == scoring.has_tensor
    assert (has("scoring.boundaries") or has("biaffine.boundaries")) == scoring.has_boundaries
    assert has("biaffine") != scoring.reads_words
    hidden = torch.randn(1, 3, 6)
    outputs = head(hidden, torch.tensor([3]))
    assert outputs.span_logits.shape == (1, 3, 3, 3)
    if outputs.span_attentions is not None:
        assert outputs.span_attentions.shape[-1] == (3 if attention.by_label else 1)
