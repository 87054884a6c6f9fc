"""`explain`: the attention and contributions behind each label's score of a span, as plain data and as text tables.

Both stages of the model are weighted sums, p_ijr = Σ_k α_ijkr · o_ijkr + b_r and pᶜ_lr = Σ_g β_lgr · t_lgr + b_r,
so their terms add up to the score exactly, with `cross_span_residual` those of pᶜ together with p. Only o and t are
computed here, for the given span; attention and scores come from the model's forward pass.
"""

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..drawing.safe_text import LONGEST_LABEL, clean, shorten
from ..drawing.tables import Table
from ..model.batches_triaffine import Feature
from ..model.decoding_triaffine import Threshold, find_entities
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import evaluating
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from ..model.span_head_triaffine import CrossSpanStage, TriaffineSpanHead
from ..model.text_triaffine import Offsets
from ..model.triaffine_ops import candidate_attention, gather_spans, label_probabilities, triaffine_pairs

MOST_WORDS, MOST_CANDIDATES, MOST_LABELS = 20, 8, 6  # of a table
LONGEST_NAME = 40  # characters


@dataclass(frozen=True)
class TextSpan:
    """A part of the text: `text[start:end]`, in characters, `end` exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Candidate(TextSpan):
    """A candidate of the sentence with its final label and the probability of this label."""

    label: str
    probability: float


@dataclass(frozen=True)
class StageScores:
    """The scores of a span in one stage, by label: logit = Σ contributions + bias.

    Attributes:
        logits: [R], one for each label.
        probabilities: [R], by softmax, or with `multi_label` sigmoid; in the final stage with the model's temperature.
        bias: [R], in the cross-span stage of a model with `cross_span_residual` plus the logit of the span stage.
        attention: [R, K], α of K inside words, or β of K candidates, which sums to 1.
        contributions: [R, K], attention times value, in logits. Both are None without attention (ablation (a)).
    """

    logits: list[float]
    probabilities: list[float]
    bias: list[float]
    attention: list[list[float]] | None
    contributions: list[list[float]] | None


@dataclass(frozen=True)
class Explanation:
    """The exact terms of a span's scores, as computed by the model.

    Attributes:
        sentence: The sentence that the span was scored in, as split by the processor.
        words: The inside words, in the order of `attention` and `contributions` in `span_stage`.
        candidates: The candidates, in the order of those in `cross_span_stage`; None if the span is not one.
        labels: The labels in the model's order, the label "None" last (with `multi_label` without it).
        span_stage, cross_span_stage: The scores before the cross-span stage, p, and those after it, pᶜ; None if the
            span is not a candidate.
        predicted: The label of the span, the likeliest of several; "None" if it is not an entity or not a candidate.
        is_candidate: Whether the span is in the cross-span stage; None for a model without this stage.
        cross_span_axis: "key": the span attends to the candidates; "query": they attend to it; None without the stage.
        also_predicted: The other labels of the span, with `multi_label`.
        cross_span_residual: Whether the bias of the `cross_span_stage` includes the logit of the `span_stage`.
    """

    span: TextSpan
    sentence: TextSpan
    words: list[TextSpan]
    candidates: list[Candidate] | None
    labels: list[str]
    span_stage: StageScores
    cross_span_stage: StageScores | None
    predicted: str
    is_candidate: bool | None
    cross_span_axis: str | None
    also_predicted: list[str] = field(default_factory=list)
    cross_span_residual: bool = False

    @property
    def final(self) -> StageScores:
        """The scores of the last stage that scored the span."""
        return self.cross_span_stage or self.span_stage

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, ready for JSON."""
        return asdict(self)


def explain(
    pipeline: NestedNERPipeline,
    text: str,
    span: tuple[int, int] | Mapping[str, Any],
    threshold: Threshold | None = None,
) -> Explanation:
    """Explains the scores of a span of a text, whether it is an entity or not.

    Args:
        pipeline: [`NestedNERPipeline`]; its processor splits the text as for predictions.
        span: Start and end (exclusive) in characters, at word boundaries of one sentence; or an entity of the pipeline.
        threshold: Least probability of labels that count as predicted, as in a call; None: that of the pipeline.

    Raises:
        ValueError: The span is not one of whole words in one sentence, or is too wide.

    Examples:
        >>> from modeling_triaffine import NestedNERPipeline
        >>> from modeling_triaffine.explanation import explain
        >>> pipeline = NestedNERPipeline("outputs/demo/model")
        >>> explain(pipeline, "The mayor of Port Velmar resigned.", (13, 24)).span.text
        'Port Velmar'
    """
    model, processor = pipeline.model, pipeline.processor
    if not hasattr(model, "represent_words"):
        raise ValueError("ONNX graphs cannot be explained; pass a NestedNERPipeline with the original model.")
    feature, offsets, (i, j) = _locate(processor, text, span)
    config = model.config
    if config.max_span_width is not None and j - i >= config.max_span_width:
        raise ValueError(f"The span has {j - i + 1} words; the model scores at most {config.max_span_width}.")
    threshold = pipeline._postprocess_params.get("threshold") if threshold is None else threshold

    def cut(first: int, last: int) -> TextSpan:
        start, end = offsets[first][0], offsets[last][1]
        return TextSpan(text[start:end], start, end)

    with evaluating(model):
        batch: dict[str, Any] = {name: part.to(model.device) for name, part in processor.pad([feature]).items()}
        hidden, _ = model.represent_words(**batch)
        output: Any = model.head(hidden, batch["num_words"])
        labels_of = defaultdict[tuple[int, int], list[tuple[str, float]]](list)
        for entity in find_entities(output, config, threshold)[0]:  # the likeliest of a span first
            labels_of[entity["start"], entity["end"] - 1].append((entity["type"], entity["score"]))
        span_stage = span_stage_scores(model.head, hidden, output, (i, j))
        cross_span_stage = candidates = None
        spans = [] if output.candidates is None else [*map(tuple, output.candidates[0].tolist())]
        if (i, j) in spans:
            cross_span_stage = cross_span_stage_scores(model.head, hidden, output, spans.index((i, j)))
            none = label_probabilities(output.logits[0], config.multi_label, config.temperature)[:, -1].tolist()
            candidates = []
            for place, of_none in zip(spans, none, strict=True):
                label, probability = (*labels_of[place], (NONE_LABEL, of_none))[0]
                candidates.append(Candidate(**vars(cut(*place)), label=label, probability=probability))
    predicted = [label for label, _ in labels_of[i, j]] or [NONE_LABEL]
    return Explanation(
        span=cut(i, j),
        sentence=cut(0, -1),
        words=[cut(word, word) for word in range(i, j + 1)],
        candidates=candidates,
        labels=list(config.id2label.values())[: config.num_scores],
        span_stage=span_stage,
        cross_span_stage=cross_span_stage,
        predicted=predicted[0],
        is_candidate=candidates is not None if config.cross_span else None,
        cross_span_axis=config.cross_span_axis if config.cross_span else None,
        also_predicted=predicted[1:],
        cross_span_residual=config.cross_span and config.cross_span_residual,
    )


def _locate(
    processor: TriaffineProcessor, text: str, span: tuple[int, int] | Mapping[str, Any]
) -> tuple[Feature, Sequence[Offsets], tuple[int, int]]:
    """Returns the sentence of the span: its feature and word offsets, and the span's first and last word in it."""
    if isinstance(span, str):
        raise TypeError(f"A span is (start, end), or an entity that the pipeline has found, not the string {span!r}.")
    start, end = (span["start"], span["end"]) if isinstance(span, Mapping) else span
    if not 0 <= start < end <= len(text):
        raise ValueError(f"The span {start}:{end} is not in the text of {len(text)} characters.")
    near: list[Offsets] = []  # in each sentence, all words that the span touches
    for piece in processor.read_text(text):
        offsets = piece.offsets
        touched = [number for number, word in enumerate(offsets) if word[0] < end and start < word[1]]
        if not touched:
            continue
        covered = offsets[touched[0]][0], offsets[touched[-1]][1]
        if covered == (start, end) and piece.owns(touched[0], touched[-1] + 1):
            return processor.encode_pieces([piece])[0], offsets, (touched[0], touched[-1])
        near.append(covered)
    quoted = ", ".join(f"{first}:{last} ({text[first:last]!r})" for first, last in near) or "none"
    raise ValueError(f"{start}:{end} ({text[start:end]!r}) is not of whole words in one sentence; nearest: {quoted}.")


def span_stage_scores(head: TriaffineSpanHead, hidden: Tensor, output: Any, span: tuple[int, int]) -> StageScores:
    """p_ijr of the span (i, j), inclusive, by inside word; output: the head's for hidden [1, N, H] in eval mode."""
    (i, j), is_final = span, not head.config.cross_span
    logits = output.span_logits[0, i, j]
    if not head.config.scoring_kind.reads_words:
        return _stage_scores(head, is_final, logits, head.label_bias)
    attention_factor, scoring_factor = head.factors(head.project(hidden))
    spans = torch.tensor([[span]], device=hidden.device)
    attention = candidate_attention(attention_factor, spans, hidden.shape[1])[0, :, 0, i : j + 1]
    values = scoring_factor.spans(spans)[0, :, 0, i : j + 1]
    return _stage_scores(head, is_final, logits, head.label_bias, attention, values)


def cross_span_stage_scores(head: TriaffineSpanHead, hidden: Tensor, output: Any, position: int) -> StageScores:
    """pᶜ_lr of the candidate l at `position`, by candidate; arguments as in [`span_stage_scores`].

    With `cross_span_axis="key"` the sum is over the related spans g that l attends to; with "query" (published code)
    the span is the related one, and the sum is over the spans l that attend to it.
    """
    stage: CrossSpanStage = head.cross_span
    bias: Tensor = head.label_bias if stage.shares else stage.label_bias
    if head.config.cross_span_residual:  # the span stage's score does not depend on the candidates
        bias = bias + gather_spans(output.span_logits, output.candidates)[0, position]
    words = head.project(hidden)
    representations = head.represent(words, output.span_attentions.permute(0, 3, 1, 2))
    spans = stage.scoring_span(representations).expand(-1, head.config.num_scores, -1, -1)
    tensor = head.scoring.triaffine if stage.shares else stage.scoring_triaffine
    values = triaffine_pairs(words[stage.scoring_boundaries], spans, tensor(), output.candidates)[0]  # t [R, l, g]
    attention = output.cross_span_attentions[0].permute(2, 0, 1)  # [R, l, g]
    axis = {"key": 1, "query": 2}[stage.axis]
    chosen = (part.select(axis, position) for part in (attention, values))
    return _stage_scores(head, True, output.logits[0, position], bias, *chosen)


def _stage_scores(head: TriaffineSpanHead, is_final: bool, logits: Tensor, bias: Tensor, *terms: Tensor) -> StageScores:
    """logits, bias [R]; terms: attention and values [R or 1, K], if the stage has any; 1 if they are not by label."""
    temperature = head.config.temperature if is_final else 1.0
    probabilities = label_probabilities(logits, head.config.multi_label, temperature)[: len(logits)]
    scores = logits.tolist(), probabilities.tolist(), bias.tolist()
    if not terms:
        return StageScores(*scores, None, None)
    attention, values = terms
    contributions = attention * values.to(attention.dtype)
    return StageScores(*scores, attention.expand_as(contributions).tolist(), contributions.tolist())


# ---- Rows of tables ----


class Row(NamedTuple):
    """A number for each label of the model, and its attention, if any; `label` is that of a candidate."""

    name: str
    numbers: Sequence[float]
    attention: Sequence[float] | None = None
    label: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name} ({shorten(self.label, LONGEST_LABEL)})" if self.label else self.name


class Stage(NamedTuple):
    """One stage as rows: terms and the bias, which add up to the last row, the logit.

    `symbol` stands for the attention, if any. Only terms have attention, but not a last one that sums up others.
    """

    heading: str
    symbol: str | None
    rows: list[Row]


def make_stages(explanation: Explanation) -> list[Stage]:
    """The rows of the text tables and of the page: the span stage, and the cross-span stage if the span is a candidate.

    Selects the 20 words and 8 candidates with the largest absolute contributions, averaged over the labels by
    probability; one more row sums up the others. Words are in text order, candidates in order of contribution.
    """
    words = [(shorten(word.text, LONGEST_NAME), None) for word in explanation.words]
    stages = [_make_stage("Inside words", "word", words, explanation.span_stage)]
    if explanation.cross_span_stage is not None and explanation.candidates is not None:
        relation = "the span attends to" if explanation.cross_span_axis == "key" else "attend to the span"
        candidates = [_name_candidate(candidate, explanation.span) for candidate in explanation.candidates]
        bias = "logit p + label bias" if explanation.cross_span_residual else "label bias"
        heading, scores = f"Candidates that {relation}", explanation.cross_span_stage
        stages.append(_make_stage(heading, "candidate", candidates, scores, bias))
    return stages


def _name_candidate(candidate: Candidate, span: TextSpan) -> tuple[str, str | None]:
    if (candidate.start, candidate.end) == (span.start, span.end):
        return "the span itself", None
    return shorten(candidate.text, LONGEST_NAME), None if candidate.label == NONE_LABEL else candidate.label


def _make_stage(
    heading: str, kind: str, names: Sequence[tuple[str, str | None]], scores: StageScores, bias_name: str = "label bias"
) -> Stage:
    """Makes the rows of a stage; `names` are words, or candidates with their labels."""
    is_word = kind == "word"
    end = [Row(bias_name, scores.bias), Row("logit p" if is_word else "logit pᶜ", scores.logits)]
    if scores.contributions is None or scores.attention is None:
        boundaries = Row("first and last word", [*map(operator.sub, scores.logits, scores.bias)])
        return Stage("Without attention to inside words", None, [boundaries, *end])
    contributions, attention = ([*zip(*rows, strict=True)] for rows in (scores.contributions, scores.attention))
    strengths = [sum(map(operator.mul, scores.probabilities, map(abs, values))) for values in contributions]
    ranked = sorted(range(len(names)), key=lambda number: -strengths[number])
    shown = sorted(ranked[:MOST_WORDS]) if is_word else ranked[:MOST_CANDIDATES]
    terms = [Row(names[n][0], contributions[n], attention[n], names[n][1]) for n in shown]
    if others := sorted(ranked[len(shown) :]):
        name = f"{len(others)} other {kind}s" if len(others) > 1 else f"1 other {kind}"
        terms.append(Row(name, [sum(values) for values in zip(*(contributions[n] for n in others), strict=True)]))
    return Stage(heading, "α" if is_word else "β", terms + end)


def likeliest_labels(explanation: Explanation) -> list[int]:
    """The indices of all labels: the predicted one first, then by probability."""
    labels, logits = explanation.labels, explanation.final.logits
    return sorted(range(len(labels)), key=lambda n: (labels[n] != explanation.predicted, -logits[n]))


def describe_span(explanation: Explanation) -> str:
    """The predicted labels with their probabilities, in one line."""
    if explanation.is_candidate is False:
        return f"{NONE_LABEL} (not a candidate)"
    probabilities = dict(zip(explanation.labels, map(probability_text, explanation.final.probabilities), strict=True))
    predicted = (explanation.predicted, *explanation.also_predicted)
    return " + ".join(f"{shorten(name, LONGEST_LABEL)} {probabilities.get(name, '')}".rstrip() for name in predicted)


def format_explanation(explanation: Explanation) -> str:
    """Formats the explanation as text tables with the likeliest labels.

    Each column is a sum: the contributions of the inside words and the bias of the label add up to p; those of the
    candidates and the bias, with `cross_span_residual` also p, add up to pᶜ.
    """
    shown = likeliest_labels(explanation)[:MOST_LABELS]
    names = [shorten(explanation.labels[number], LONGEST_LABEL) for number in shown]
    by_stage = {"by p": explanation.span_stage, "by pᶜ": explanation.cross_span_stage}
    probabilities = [
        [name, *(probability_text(scores.probabilities[number]) for number in shown)]
        for name, scores in by_stage.items()
        if scores is not None
    ]
    tables = [Table(["probability", *names], probabilities)]
    for stage in make_stages(explanation):
        note = f": contribution (attention {stage.symbol})" if stage.symbol else ""
        rows = [[row.title, *(_cell(row, number) for number in shown)] for row in stage.rows]
        tables.append(Table(["", *names], rows, stage.heading + note))
    left_out = len(explanation.labels) - len(shown)
    notes = [f"Labels left out: {left_out}."] if left_out else []
    heading = f"“{clean(explanation.span.text)}”\n{describe_span(explanation)}"
    return "\n\n".join([heading, *(table.text() for table in tables), *notes])


def _cell(row: Row, label: int) -> str:
    number = number_text(row.numbers[label])
    return f"{number} ({row.attention[label]:.2f})" if row.attention else number


def number_text(value: float) -> str:
    """A contribution or logit, signed and rounded."""
    digits = 2 if abs(value) < 100 else 0
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


def probability_text(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2f}"
