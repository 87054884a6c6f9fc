"""The uncertainty of a model about sentences and texts, by hand-made scores and on a tiny model."""

import math
from types import SimpleNamespace

import pytest
import torch

from modeling_triaffine import NestedNERPipeline, TriaffineConfig
from modeling_triaffine.evaluation.prediction import read_texts, uncertainty
from tests.helpers.portable import near

SENTENCES = ["The IL-2 gene binds protein.", "It is DNA!"]
TEXTS = [*SENTENCES, " ".join(SENTENCES), " ".join(SENTENCES[::-1]), "", "gene binds " * 10]


def scores(*rows):
    """The output of a model for sentences whose candidates have these probabilities; None is no candidate."""
    size = max(map(len, rows))
    filled = [[*row, *[None] * (size - len(row))] for row in rows]
    logits = torch.tensor([[[math.log(p) for p in span or (0.5, 0.5, 1e-9)] for span in row] for row in filled])
    mask = torch.tensor([[span is not None for span in row] for row in filled])
    return SimpleNamespace(logits=logits, candidates=None, candidate_mask=mask, span_logits=None)


ONE_LABEL = TriaffineConfig(num_labels=3)
SEVERAL = TriaffineConfig(num_labels=3, multi_label=True)
SURE, TORN = (0.01, 0.01, 0.98), (0.49, 0.02, 0.49)


def test_margin_is_of_the_least_sure_span():
    output = scores([SURE], [SURE, TORN, SURE], [(0.1, 0.3, 0.6), (0.2, 0.1, 0.7)], [])  # the last has no candidates
    assert uncertainty(output, ONE_LABEL).tolist() == pytest.approx([0.03, 1.0, 0.7, 0.0], abs=1e-5)


def test_with_several_labels_on_a_span_each_is_a_decision_of_its_own():
    logits, mask = torch.tensor([[[0.9, 0.8], [0.6, 0.1]]]).logit(), torch.tensor([[True, True]])
    output = SimpleNamespace(logits=logits, candidates=None, candidate_mask=mask, span_logits=None)
    assert uncertainty(output, SEVERAL).tolist() == pytest.approx([0.8], abs=1e-5)


def test_texts_are_read_as_the_pipeline_reads_them_and_unsure_whatever_the_batch(saved_model):
    pipeline = NestedNERPipeline(model=str(saved_model))
    pipeline.processor.max_sentence_words = 16  # the last text is read in windows
    together = read_texts(pipeline, TEXTS, batch_size=3, threshold=0.2, overlap="nested")
    for one, entities in zip(together, pipeline(TEXTS, threshold=0.2, overlap="nested"), strict=True):
        assert one.entities == near(entities)
        (alone,) = read_texts(pipeline, [one.text], batch_size=1)
        assert one.uncertainty == pytest.approx(alone.uncertainty, abs=1e-5)
        words = [one.text[start:end] for sentence in one.sentences for start, end in sentence]
        assert "".join(words) == "".join(one.text.split())
    assert len(together[-1].sentences) == 1
    first, second, *of_both = [one.uncertainty for one in together[:4]]
    assert of_both == pytest.approx([max(first, second)] * 2, abs=1e-5)
    assert first != second
