"""Calibration of a trained model: a temperature for its probabilities, and the best threshold of each label.

The final logits are divided by a temperature, fitted by maximum likelihood (Guo et al., "On Calibration of Modern
Neural Networks", ICML 2017), before thresholds are chosen. The expected calibration error is the mean difference
between probability and share of correct predictions, over bins of equal width weighted by their size.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..data.collator import Windows
from ..drawing.tables import Cell, Code, Table
from ..model.decoding_triaffine import entity_mask, final_scores
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import PredictionOptions
from ..model.processing_triaffine import TriaffineProcessor
from ..model.triaffine_ops import label_probabilities
from .prediction import read_records
from .scores import RATIOS, Counts, percentages, read_entities

logger = logging.getLogger(__name__)

BINS = 10
# Spans below this probability are irrelevant for thresholds: even at a temperature of 3 they stay below 0.01.
LEAST_PROBABILITY = 1e-6
LEAST_FITTED_PROBABILITY = 0.1  # the temperature is fitted on predictions of at least this probability
LEAST_ENTITIES = 5  # with fewer gold entities, the threshold of a label with the best F1 is a matter of chance
# Probabilities with a smaller expected calibration error are calibrated enough for `shared_threshold`.
CALIBRATED = 0.05


@dataclass
class LabelCalibration:
    """The scores of a label on the calibration sentences."""

    before: dict[str, Any]  # `Counts.scores()` without the threshold
    after: dict[str, Any]  # and with it
    threshold: float | None = None  # None: it keeps the default, because it has few entities or would gain little


@dataclass
class Calibration:
    """The temperature and thresholds of a model, and their effect on the calibration sentences."""

    split: str
    sentences: int
    temperature: float
    errors: tuple[float, float]  # expected calibration errors without and with the temperature, from 0 to 1
    labels: dict[str, LabelCalibration] = field(default_factory=dict)

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: label.threshold for name, label in self.labels.items() if label.threshold is not None}


def threshold_table(labels: Mapping[str, LabelCalibration]) -> Table:
    """Thresholds, and precision, recall and F1 in percent without and with them."""
    ratios = [*RATIOS.values(), *(f"{name} before" for name in RATIOS.values())]
    rows: list[list[Cell]] = []
    for name, label in labels.items():
        threshold = "default" if label.threshold is None else f"{label.threshold:.3f}"
        rows.append([Code(name), label.after["gold"], threshold, *percentages(label.after), *percentages(label.before)])
    return Table(["Label", "Entities", "Threshold", *ratios], rows)


@dataclass(frozen=True)
class ScoredSpans:
    """A model's final scores of the spans of a corpus that could be entities, and their gold labels."""

    logits: Tensor  # [S, R], or [S, R - 1] with `multi_label`
    gold: Tensor  # [S, R - 1], the gold labels of each span
    entities: list[int]  # of gold, by label, including those that are not candidates
    multi_label: bool = False

    def probabilities(self, temperature: float) -> Tensor:
        """The probabilities of the entity labels at a temperature: [S, R - 1]."""
        return label_probabilities(self.logits, self.multi_label, temperature)[..., : self.gold.shape[-1]]

    def found(self, threshold: float | None) -> Tensor:
        """Marks the labels that are predicted with this threshold: [S, R - 1]."""
        return entity_mask(self.logits, [threshold] * len(self.entities), self.multi_label)

    def found_of_gold_labels(self, threshold: float | None) -> Tensor:
        """The same without labels that have no gold entity: the corpus may not annotate them."""
        return self.found(threshold) & torch.tensor(self.entities).bool()


def calibrate(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    split: str,
    batch_size: int | None = PredictionOptions.batch_size,
) -> Calibration:
    """Finds the temperature and thresholds of a model on sentences that it was not trained on, without changing it.

    Args:
        records: sentences with `tokens` and `entities`, and context if the model reads it; `split` is their name.
    """
    config = model.config
    if {entity["type"] for record in records for entity in record["entities"]}.isdisjoint(config.entity_labels):
        labels = ", ".join(config.entity_labels)
        raise ValueError(f"None of the {len(records)} sentences has an entity of the model's labels ({labels}).")
    spans = score_spans(model, processor, records, batch_size)
    temperature = fit_temperature(spans)
    return Calibration(
        split=split,
        sentences=len(records),
        temperature=temperature,
        labels=_calibrate_labels(config.entity_labels, spans, temperature),
        errors=(calibration_error(spans), calibration_error(spans, temperature)),
    )


def score_spans(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    batch_size: int | None = PredictionOptions.batch_size,
) -> ScoredSpans:
    """Runs the model on at least one record; arguments as in [`calibrate`]."""
    config, names = model.config, model.config.entity_labels

    def read(inputs: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
        logits, spans, mask = final_scores(model(**inputs, return_dict=True))
        likelihood = label_probabilities(logits, config.multi_label)[..., :-1].amax(-1)
        likely = mask & (likelihood >= LEAST_PROBABILITY)
        sentences = zip(logits, spans, likely, strict=True)
        return [(scores[chosen].float().cpu(), spans[chosen].cpu()) for scores, spans, chosen in sentences]

    windows = Windows(records, processor)
    found: list[Any] = read_records(model, processor, windows, read, batch_size, doing="Scoring spans")
    counts = Counter(name for record in records for *_, name in read_entities(record["entities"], "gold"))
    scores, gold = [], []
    for number, (window, (logits, spans)) in enumerate(zip(windows, found, strict=True)):
        known = read_entities(window["entities"], "gold")
        is_own = [windows.owns(number, i, j + 1) for i, j in spans.tolist()]
        is_gold = [[(i, j + 1, name) in known for name in names] for i, j in spans[is_own].tolist()]
        scores.append(logits[is_own])
        gold.append(torch.tensor(is_gold, dtype=torch.bool).view(-1, len(names)))
    return ScoredSpans(torch.cat(scores), torch.cat(gold), [counts[name] for name in names], config.multi_label)


def fit_temperature(spans: ScoredSpans) -> float:
    """The temperature of maximum likelihood, from 0.1 to 10; 1, with a warning, if it has no maximum there.

    Fitted on the best label of each span (with `multi_label` on every label) with a probability of at least
    `LEAST_FITTED_PROBABILITY`; the many spans that are clearly no entities would dominate these.
    """
    predicted = spans.found_of_gold_labels(LEAST_FITTED_PROBABILITY)
    is_correct = spans.gold[predicted].double()
    log_temperature = torch.zeros((), dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_temperature], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        scaled = replace(spans, logits=spans.logits.double() / log_temperature.exp())
        probabilities = scaled.probabilities(temperature=1.0)[predicted]
        value = functional.binary_cross_entropy(probabilities.clamp(1e-7, 1 - 1e-7), is_correct)
        value.backward()
        return value

    if len(is_correct.unique()) == 2:
        optimizer.step(loss)
        temperature = float(log_temperature.detach().exp())
        if 0.1 < temperature < 10.0:
            return temperature
    counts = len(is_correct), int((1 - is_correct).sum())
    logger.warning("The temperature stays 1: of %d predictions, %d are wrong. Use more sentences.", *counts)
    return 1.0


def calibration_error(spans: ScoredSpans, temperature: float = 1.0) -> float:
    """The expected calibration error of the entities that are predicted without thresholds, from 0 to 1."""
    predicted = spans.found_of_gold_labels(None)
    probabilities = spans.probabilities(temperature)[predicted]
    bins = (probabilities * BINS).long().clamp(max=BINS - 1)
    differences = bins.bincount(probabilities.double() - spans.gold[predicted].double(), BINS)  # summed in each bin
    return float(differences.abs().sum()) / max(1, len(bins))


def _calibrate_labels(names: Sequence[str], spans: ScoredSpans, temperature: float) -> dict[str, LabelCalibration]:
    """Scores each label with the threshold of its best F1; without one if that is chance, or hardly better."""
    probabilities = spans.probabilities(temperature)
    by_default, could_be = spans.found(None), spans.found(0.0)  # thresholds accept or reject the latter
    labels = {}
    for number, name in enumerate(names):
        rows, entities = could_be[:, number], spans.entities[number]
        scores, gold = probabilities[rows, number].double(), spans.gold[rows, number]
        before = after = _count(gold[by_default[rows, number]], entities)
        threshold = None
        if entities >= LEAST_ENTITIES and len(scores):
            best = choose_threshold(scores, gold, entities)
            found = _count(gold[scores >= best], entities)
            # The best of many thresholds is overestimated: a gain within a standard error is lost on other sentences.
            # The error is estimated with one more correct and one more wrong entity, else it would be 0 at an F1 of 1.
            f1 = (found.f1 * entities + 1) / (entities + 2)
            if found.f1 - before.f1 > (f1 * (1 - f1) / entities) ** 0.5:
                threshold, after = best, found
        labels[name] = LabelCalibration(before.scores(), after.scores(), threshold)
    return labels


def shared_threshold(spans: ScoredSpans, temperature: float) -> float | None:
    """One threshold for all labels: half of the F1 that is reached with it.

    It maximizes F1 if the probabilities are calibrated (Lipton et al., "Optimal Thresholding of Classifiers to Maximize
    F1 Measure", ECML PKDD 2014). None, for the likeliest label, if the expected calibration error is `CALIBRATED` or
    more, or no threshold finds entities.
    """
    if calibration_error(spans, temperature) >= CALIBRATED:
        return None
    could_be = spans.found_of_gold_labels(0.0)
    scores, gold = spans.probabilities(temperature)[could_be], spans.gold[could_be]
    threshold = 0.5
    for _ in range(20):
        following = _count(gold[scores >= threshold], sum(spans.entities)).f1 / 2
        if abs(following - threshold) < 1e-3:
            break
        threshold = following
    return threshold or None  # 0 would accept every candidate


def _count(is_correct: Tensor, entities: int) -> Counts:
    correct = int(is_correct.sum())
    return Counts(correct=correct, predicted=len(is_correct), found=correct, gold=entities)


def choose_threshold(scores: Tensor, gold: Tensor, entities: int) -> float:
    """The threshold with the best F1, halfway between two scores.

    Args:
        scores, gold: [S], positive probabilities of a label, and whether the spans have it.
        entities: number of gold entities, including those without a score.
    """
    order = scores.argsort(descending=True, stable=True)
    ranked, correct = scores[order], gold[order].cumsum(0)
    f1 = 2 * correct / (torch.arange(1, len(ranked) + 1) + entities)
    following = torch.cat([ranked[1:], ranked.new_zeros(1)])
    best = int(f1.masked_fill(ranked <= following, -1.0).argmax())  # no threshold lies between equal scores
    return float((ranked[best] + following[best]) / 2)
