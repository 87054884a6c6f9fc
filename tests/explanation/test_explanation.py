"""Explanations: the parts of a score add up to the model's own, in every configuration; data, errors, tables."""

import itertools
import json
from types import SimpleNamespace

import pytest
import torch

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.drawing.safe_text import LONGEST_LABEL, shorten
from modeling_triaffine.explanation import Explanation, explain, explaining, format_explanation
from modeling_triaffine.explanation.explaining import Candidate, StageScores, TextSpan, make_stages
from modeling_triaffine.model import span_head_triaffine
from modeling_triaffine.model.triaffine_ops import cross_span_scores, inside_attention_reference
from tests.helpers.factors import FACTORS, HAVE_TENSORS
from tests.helpers.tiny import tiny_model, tiny_pipeline, tiny_processor
from tests.model.test_span_head import make_head

TEXT = "It works. The IL-2 gene binds protein! DNA"
SPAN = (14, 23)  # IL-2 gene
FOUND = {"seed": 3, "max_candidates": 20, "triaffine_init_std": 3.0}  # of a model that has SPAN among its entities

WITH_ATTENTION = [{"attention": a, "scoring": s, "cross_span": False} for a, s in FACTORS]
CROSS_SPAN = [
    *({"attention": a, "scoring": s, "share_triaffine": False} for a, s in FACTORS),
    *({"attention": a, "scoring": s, "share_triaffine": True} for a, s in HAVE_TENSORS),
]


def name_of(fields):
    return "-".join(str(value) for value in fields.values())


def run_head(**fields):
    """A head in float64 with random words of one sentence of five, and its output."""
    head, hidden, lengths = make_head(lengths=(5,), **fields)
    with torch.no_grad():
        return head, hidden, head(hidden, lengths)


def all_spans(num_words):
    return list(itertools.combinations_with_replacement(range(num_words), 2))


def as_tensors(scores):
    return SimpleNamespace(**{name: torch.tensor(part, dtype=torch.double) for name, part in vars(scores).items()})


def assert_equal(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


# ---- the parts against the definition


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("fields", WITH_ATTENTION, ids=name_of)
@torch.no_grad()
def test_words_add_up_to_the_span_score(fields, rank):
    head, hidden, output = run_head(**fields, triaffine_rank=rank)
    attention_factor, scoring_factor = head.factors(head.project(hidden))
    attention = inside_attention_reference(attention_factor.whole_cube())[0].expand(4, -1, -1, -1)
    values = scoring_factor.whole_cube()[0]
    for i, j in all_spans(5):
        parts = as_tensors(explaining.span_stage_scores(head, hidden, output, (i, j)))
        assert_equal(parts.contributions.sum(-1) + parts.bias, output.span_logits[0, i, j])
        assert_equal(parts.logits, output.span_logits[0, i, j])
        assert_equal(parts.attention, attention[:, i, j, i : j + 1])
        assert_equal(parts.contributions, (attention * values)[:, i, j, i : j + 1])


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("axis", ["key", "query"])
@pytest.mark.parametrize("fields", CROSS_SPAN, ids=name_of)
@torch.no_grad()
def test_candidates_add_up_to_the_final_score(fields, axis, rank, monkeypatch):
    given = []

    def spy(queries, values, *arguments):
        given.append(values[0])
        return cross_span_scores(queries, values, *arguments)

    monkeypatch.setattr(span_head_triaffine, "cross_span_scores", spy)
    head, hidden, output = run_head(**fields, cross_span_axis=axis, triaffine_rank=rank)
    related = given[0].permute(1, 2, 0)  # t [l, g, R]
    terms = output.cross_span_attentions[0] * related
    for position in range(4):
        parts = as_tensors(explaining.cross_span_stage_scores(head, hidden, output, position))
        assert_equal(parts.contributions.sum(-1) + parts.bias, output.logits[0, position])
        assert_equal(parts.logits, output.logits[0, position])
        assert_equal(parts.attention.sum(-1), torch.ones(4, dtype=torch.double))
        expected = terms[position] if axis == "key" else terms[:, position]
        assert_equal(parts.contributions, expected.T)


# ---- texts


@pytest.fixture(scope="module")
def pipeline(encoder):
    model = tiny_model(encoder, **FOUND).double()
    return NestedNERPipeline(model=model, processor=tiny_processor(encoder))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"cross_span_axis": "query", "triaffine_rank": 3},
        {"cross_span_residual": True},
        {"multi_label": True},
        {"cross_span": False, "attention": "triaffine_no_label"},
        {"cross_span": False, "attention": "none", "scoring": "biaffine"},
    ],
    ids=name_of,
)
def test_an_explanation_multiplies_out_to_the_scores_of_the_model(encoder, fields):
    model = tiny_model(encoder, **FOUND | fields).double()
    processor = tiny_processor(encoder, context="document")
    pipeline = NestedNERPipeline(model=model, processor=processor)
    outputs = [model(**processor.pad([feature])) for feature, _ in processor.encode_text(TEXT)]
    has_attention = fields.get("attention") != "none"
    with_candidates = 0
    places = {SPAN: (1, 1, 4), (10, 13): (1, 0, 0), (14, 38): (1, 1, 7), (39, 42): (2, 0, 0)}
    for span, (sentence, i, j) in places.items():
        explanation, output = explain(pipeline, TEXT, span), outputs[sentence]
        assert len(explanation.words) == j - i + 1
        assert ("Without attention to inside words" in format_explanation(explanation)) != has_attention
        for *parts, logit in (stage.rows for stage in make_stages(explanation)):
            sums = [*map(sum, zip(*(row.numbers for row in parts), strict=True))]
            assert sums == pytest.approx(logit.numbers, abs=1e-10)
        stages = [(explanation.span_stage, output.span_logits[0, i, j], len(explanation.words))]
        if explanation.cross_span_stage:
            with_candidates += 1
            logits = output.logits[0, output.candidates[0].tolist().index([i, j])]
            stages.append((explanation.cross_span_stage, logits, len(explanation.candidates)))
        for stage, logits, terms in stages:
            assert stage.logits == pytest.approx(logits.tolist(), abs=1e-10)
            assert (stage.contributions is not None) == has_attention
            if has_attention:
                for values, attention in zip(stage.contributions, stage.attention, strict=True):
                    assert len(values) == len(attention) == terms
    assert bool(with_candidates) == model.config.cross_span


def test_explanations_agree_with_the_pipeline(pipeline):
    found = pipeline(TEXT)
    assert SPAN in [(entity["start"], entity["end"]) for entity in found]
    for entity in found:
        explanation = explain(pipeline, TEXT, (entity["start"], entity["end"]))
        scores = dict(zip(explanation.labels, explanation.final.probabilities, strict=True))
        assert explanation.predicted == entity["entity_group"]
        assert scores[entity["entity_group"]] == pytest.approx(entity["score"], abs=1e-12)
        own = [c for c in explanation.candidates if (c.start, c.end) == (entity["start"], entity["end"])]
        assert [(c.label, c.probability) for c in own] == [(entity["entity_group"], pytest.approx(entity["score"]))]


def test_the_thresholds_of_the_pipeline_count(pipeline):
    entities = pipeline(TEXT)
    scores = sorted(entity["score"] for entity in entities)
    gaps = sorted((high - low, (low + high) / 2) for low, high in itertools.pairwise(scores))
    threshold = gaps[-1][1]  # in the widest gap, so that rounding decides nothing
    strict = NestedNERPipeline(model=pipeline.model, processor=pipeline.processor, threshold=threshold)
    for entity in entities:
        span, label = (entity["start"], entity["end"]), entity["entity_group"]
        expected = label if entity["score"] >= threshold else "None"
        assert explain(strict, TEXT, span).predicted == expected
        assert explain(pipeline, TEXT, span, threshold={label: threshold}).predicted == expected
    with pytest.raises(ValueError, match="`threshold` is 5; give a number"):
        explain(pipeline, TEXT, SPAN, threshold=5)


def test_an_explanation_is_plain_data_with_offsets_into_the_text(pipeline):
    explanation = explain(pipeline, TEXT, SPAN)
    data = json.loads(json.dumps(explanation.to_dict()))
    assert data["span"] == {"text": "IL-2 gene", "start": 14, "end": 23}
    assert data["sentence"]["text"] == "The IL-2 gene binds protein!"
    assert [word["text"] for word in data["words"]] == ["IL", "-", "2", "gene"]
    for piece in (data["sentence"], *data["words"], *data["candidates"]):
        assert TEXT[piece["start"] : piece["end"]] == piece["text"]
    assert data["labels"] == ["DNA", "protein", "None"]
    assert (data["is_candidate"], data["cross_span_axis"], len(data["candidates"])) == (True, "key", 20)
    assert data["span_stage"]["attention"] == explanation.span_stage.attention


def test_spans_that_are_no_candidates_are_none(pipeline):
    starts, ends = [10, 14, 16, 17, 19, 24, 30, 37], [13, 16, 17, 18, 23, 29, 37, 38]
    explanations = [explain(pipeline, TEXT, (starts[i], ends[j])) for i, j in all_spans(len(starts))]
    for explanation in explanations:
        if not explanation.is_candidate:
            assert (explanation.predicted, explanation.candidates) == ("None", None)
            assert "None (not a candidate)" in format_explanation(explanation)
            assert explanation.cross_span_stage is None
    assert sum(explanation.is_candidate for explanation in explanations) == 20


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((15, 23), r"15:23 \('L-2 gene'\) is not of whole words in one sentence; nearest: 14:23 \('IL-2 gene'\)\."),
        ((13, 14), r"nearest: none\."),
        ((3, 13), r"nearest: 3:9 \('works.'\), 10:13 \('The'\)"),
        ((38, 43), "38:43 is not in the text of 42 characters"),
    ],
)
def test_errors_about_misplaced_spans_give_the_nearest(pipeline, span, message):
    with pytest.raises(ValueError, match=message):
        explain(pipeline, TEXT, span)


def test_a_span_wider_than_the_model_scores_is_refused(encoder):
    pipeline = tiny_pipeline(encoder, max_span_width=3)
    assert explain(pipeline, TEXT, {"start": 16, "end": 23}) == explain(pipeline, TEXT, (16, 23))  # an entity
    assert len(explain(pipeline, TEXT, (16, 23)).words) == 3
    with pytest.raises(ValueError, match="has 4 words; the model scores at most 3"):
        explain(pipeline, TEXT, SPAN)


# ---- tables


def stage_scores(labels, terms, seed):
    """Made-up scores that add up."""
    generator = torch.Generator().manual_seed(seed)
    attention = torch.randn(labels, terms, generator=generator).mul(2).softmax(-1)
    contributions = attention * torch.randn(labels, terms, generator=generator) * 9
    bias = torch.randn(labels, generator=generator)
    logits = contributions.sum(-1) + bias
    return StageScores(*(part.tolist() for part in (logits, logits.softmax(-1), bias, attention, contributions)))


ODD_WORDS = ["$x^2$", "\\frac{1}", "<b>&", "nul\x00esc\x1b[31m", "line\nbreak", "\ud800", "W" * 90] * 5
NAMES = ["a_very_long_label_of_many_characters", "cell$_line$", *(f"LABEL_{n}" for n in range(17)), "None"]
AFTER = stage_scores(len(NAMES), 30, 1)
LARGE = Explanation(
    span=TextSpan(" ".join(ODD_WORDS), 0, 1),
    sentence=TextSpan(" ".join(ODD_WORDS), 0, 1),
    words=[TextSpan(word, 0, 1) for word in ODD_WORDS],
    candidates=[Candidate("$\\alpha$ and " + "long " * n, n, n + 1, NAMES[n % 20], 0.5) for n in range(30)],
    labels=NAMES,
    span_stage=stage_scores(len(NAMES), len(ODD_WORDS), 0),
    cross_span_stage=AFTER,
    predicted=NAMES[AFTER.logits.index(max(AFTER.logits))],
    is_candidate=True,
    cross_span_axis="query",
)


def test_the_largest_contributions_are_shown_and_the_rest_is_summed():
    words, candidates = make_stages(LARGE)
    assert (len(words.rows), words.rows[-3].name) == (explaining.MOST_WORDS + 3, "15 other words")
    assert (len(candidates.rows), candidates.rows[-3].name) == (explaining.MOST_CANDIDATES + 3, "22 other candidates")
    assert candidates.heading == "Candidates that attend to the span"

    for stage, scores in ((words, LARGE.span_stage), (candidates, LARGE.cross_span_stage)):
        *parts, logit = stage.rows
        assert [*map(sum, zip(*(row.numbers for row in parts), strict=True))] == pytest.approx(logit.numbers, abs=1e-5)
        rows = [*zip(*scores.contributions, strict=True)]
        strength = [sum(p * abs(v) for p, v in zip(scores.probabilities, row, strict=True)) for row in rows]
        strongest = sorted(range(len(rows)), key=lambda number, by=strength: -by[number])[: len(parts) - 2]
        expected = sorted(strongest) if stage is words else strongest  # words in the order of the text
        assert [row.numbers for row in parts[:-2]] == [rows[number] for number in expected]


def test_the_text_has_the_likeliest_labels_and_nothing_that_controls_a_terminal():
    lines = format_explanation(LARGE).splitlines()
    assert lines[3].split()[:2] == ["probability", shorten(LARGE.predicted, LONGEST_LABEL)]
    assert lines[-1] == f"Labels left out: {len(LARGE.labels) - explaining.MOST_LABELS}."
    assert all(line.isprintable() for line in lines)


def test_the_command_prints_tables(saved_model, command):
    options = ["explain", "--model", saved_model, "--text", TEXT, "--device", "cpu"]
    assert "Inside words: contribution (attention α)" in command(*options, "--span", "IL-2 gene").out
    twice = command(*options, "--span", "e")
    assert (twice.code, twice.out) == (2, "")
    assert "occurs 4 times in the text" in twice.err
