"""Calibration: probabilities that mean what they say, and for each label the threshold that serves best.

A model's final logits are divided by a temperature, found by maximum likelihood (Guo et al., "On Calibration of Modern
Neural Networks", ICML 2017), before thresholds are chosen. How far probabilities are off is the expected calibration
error: the mean, over bins of equal width, of the difference between the mean probability and the share of the right
ones, weighted by the predictions in a bin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..model.decoding_triaffine import entity_mask
from ..model.modeling_triaffine import NestedNEROutput, TriaffineForNestedNER, evaluating
from ..model.processing_triaffine import TriaffineProcessor
from ..model.triaffine_ops import label_probabilities
from .prediction import word_batches
from .reliability import Bin, Calibration, LabelCalibration
from .scoring import Counts

BINS = 10
# Spans whose labels are all less probable say nothing about thresholds.
LEAST_PROBABILITY = 0.01
SAID = 0.1


class Goal(NamedTuple):
    """What a threshold is to reach: the best F1, or a precision or recall of at least `least`."""

    measure: Literal["F1", "precision", "recall"] = "F1"
    least: float = 0.0

    def __str__(self) -> str:
        return f"{self.measure} ≥ {self.least:g}" if self.least else f"best {self.measure}"


@dataclass(frozen=True)
class Readings:
    """What a model says of the spans of a corpus that could be entities, and what they are.

    Attributes:
        logits: [S, R], or [S, R - 1] of a model that gives a span several labels; final ones.
        gold: [S, R - 1], which labels the span has.
        entities: gold entities of each label, those that are no candidates included. What a model says of a label
            without any does not count: the sentences may not be annotated with it.
    """

    logits: Tensor
    gold: Tensor
    entities: list[int]

    def said(self, probabilities: Tensor, threshold: float | None, multi_label: bool) -> Tensor:
        """[S, R - 1], which labels that the sentences have are found with this threshold."""
        found = entity_mask(probabilities, [threshold] * len(self.entities), multi_label)
        return found & torch.tensor(self.entities).bool()


def calibrate(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    split: str,
    goal: Goal = Goal(),  # noqa: B008 - immutable
    batch_size: int = 32,
) -> Calibration:
    """Finds a model's temperature and thresholds on sentences that it was not trained on; the model stays as it is.

    Args:
        records: sentences with `tokens` and `entities`, and context where the model reads it.
        split: what they are called.
        goal: what each label's threshold is to reach on them.

    Raises:
        ValueError: none of the records has an entity of the model's labels.
    """
    config: Any = model.config
    readings = read_entities(model, processor, records, batch_size)
    if not any(readings.entities):
        labels = ", ".join(config.entity_labels)
        raise ValueError(f"None of the {len(records)} sentences has an entity of the model's labels ({labels}).")
    temperature = fit_temperature(readings, config.multi_label)
    before, after = (
        label_probabilities(readings.logits, config.multi_label, divisor) for divisor in (1.0, temperature)
    )
    return Calibration(
        split=split,
        sentences=len(records),
        goal=str(goal),
        temperature=temperature,
        labels=_calibrate_labels(config, readings, after, goal),
        bins_before=reliability(before, readings, config.multi_label),
        bins_after=reliability(after, readings, config.multi_label),
    )


def read_entities(
    model: TriaffineForNestedNER, processor: TriaffineProcessor, records: Sequence[dict[str, Any]], batch_size: int = 32
) -> Readings:
    """Runs the model over the records; arguments are those of [`calibrate`]."""
    config: Any = model.config
    names = config.entity_labels
    entities = dict.fromkeys(names, 0)
    logits, gold = [], []
    with evaluating(model):
        for rows, inputs in word_batches(model, processor, records, batch_size, doing="Reading"):
            output = model(**inputs)
            for place, row in enumerate(rows):
                spans, of_spans = _likely_spans(config, output, place)
                known = {(one["start"], one["end"] - 1, one["type"]) for one in records[row]["entities"]}
                for *_, name in known:
                    if name in entities:
                        entities[name] += 1
                is_gold = [[(i, j, name) in known for name in names] for i, j in spans.tolist()]
                gold.append(torch.tensor(is_gold, dtype=torch.bool).view(-1, len(names)))
                logits.append(of_spans.float().cpu())
    return Readings(torch.cat(logits), torch.cat(gold), list(entities.values()))


def _likely_spans(config: Any, output: NestedNEROutput, place: int) -> tuple[Tensor, Tensor]:
    """Spans [S, 2], both words inclusive, of a sentence of the batch that could be entities, and their final logits."""
    if output.logits is None:
        assert output.span_logits is not None
        of_sentence = output.span_logits[place]
        likely = _is_likely(config, of_sentence)
        return likely.nonzero(), of_sentence[likely]
    assert output.candidates is not None
    assert output.candidate_mask is not None
    of_sentence = output.logits[place]
    likely = _is_likely(config, of_sentence) & output.candidate_mask[place]
    return output.candidates[place][likely], of_sentence[likely]


def _is_likely(config: Any, logits: Tensor) -> Tensor:
    return label_probabilities(logits, config.multi_label)[..., :-1].amax(-1) >= LEAST_PROBABILITY


def fit_temperature(readings: Readings, multi_label: bool) -> float:
    """The temperature, from 0.1 to 10, under which what the model says of its labels is likeliest.

    Said of a span are its best label, or all of them if it can have several, with a probability of at least `SAID`. The
    many spans that are certainly none would drown these.
    """
    probabilities = label_probabilities(readings.logits, multi_label)
    said = readings.said(probabilities, SAID, multi_label)
    if not said.any():
        return 1.0
    logits, is_right = readings.logits.double(), readings.gold[said].double()
    exponent = torch.zeros((), dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([exponent], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        of_entities = label_probabilities(logits / exponent.exp(), multi_label)[..., :-1]
        value = functional.binary_cross_entropy(of_entities[said].clamp(1e-7, 1 - 1e-7), is_right)
        value.backward()
        return value

    optimizer.step(loss)
    return float(exponent.detach().exp().clamp(0.1, 10.0))


def reliability(probabilities: Tensor, readings: Readings, multi_label: bool) -> list[Bin]:
    """How probable and how right the entities are that are found without thresholds, by bins of their probability.

    probabilities [S, R], None the last.
    """
    found = readings.said(probabilities, None, multi_label)
    of_entities, is_right = probabilities[..., :-1][found], readings.gold[found]
    places = (of_entities * BINS).long().clamp(max=BINS - 1)
    bins = []
    for place in range(BINS):
        inside = places == place
        count = int(inside.sum())
        means = (float(values[inside].double().mean()) if count else 0.0 for values in (of_entities, is_right))
        bins.append(Bin(count, *means))
    return bins


def _calibrate_labels(
    config: Any, readings: Readings, probabilities: Tensor, goal: Goal
) -> dict[str, LabelCalibration]:
    nothing, everything = ([value] * len(config.entity_labels) for value in (None, 0.0))
    by_default = entity_mask(probabilities, nothing, config.multi_label)
    could_be = entity_mask(probabilities, everything, config.multi_label)  # a threshold decides on these
    labels = {}
    for number, name in enumerate(config.entity_labels):
        rows, entities = could_be[:, number], readings.entities[number]
        scores, gold = probabilities[rows, number].double(), readings.gold[rows, number]
        before = _count(gold[by_default[rows, number]], entities)
        labels[name] = _calibrate_label(scores, gold, before, goal)
    return labels


def _calibrate_label(scores: Tensor, gold: Tensor, before: Counts, goal: Goal) -> LabelCalibration:
    threshold, reason = None, "no entities"
    if before.gold:
        threshold = choose_threshold(scores, gold, before.gold, goal)
        reason = f"never {goal}"
    after = before if threshold is None else _count(gold[scores >= threshold], before.gold)
    # The best of many thresholds looks better than it is: on other sentences, one that gains less loses.
    noise = (after.f1 * (1 - after.f1) / max(1, before.gold)) ** 0.5
    if goal.measure == "F1" and before.gold and after.f1 - before.f1 <= noise:
        threshold, reason, after = None, "as good", before
    return LabelCalibration(before.scores(), after.scores(), threshold, None if threshold is not None else reason)


def _count(is_right: Tensor, entities: int) -> Counts:
    correct = int(is_right.sum())
    return Counts(correct=correct, predicted=len(is_right), found=correct, gold=entities)


def choose_threshold(scores: Tensor, gold: Tensor, entities: int, goal: Goal) -> float | None:
    """The threshold that reaches the goal best, half-way between two scores; None where none reaches it.

    For a precision it is the one of highest recall that has it, for a recall that of highest precision.

    Args:
        scores: [S], probabilities of a label; gold: [S], whether the spans have it.
        entities: gold entities, those without a score included.
    """
    order = scores.argsort(descending=True, stable=True)
    ranked, correct = scores[order], gold[order].cumsum(0)
    predicted = torch.arange(1, len(ranked) + 1)
    precision, recall = correct / predicted, correct / entities
    f1 = 2 * correct / (predicted + entities)
    following = torch.cat([ranked[1:], ranked.new_zeros(1)])
    possible = ranked > following  # none can stand between equal scores
    if goal.measure == "F1":
        value = f1
    else:
        reached, value = (precision, recall) if goal.measure == "precision" else (recall, precision)
        possible &= reached >= goal.least
    if not possible.any():
        return None
    best = int(value.masked_fill(~possible, -1.0).argmax())
    return float((ranked[best] + following[best]) / 2)
