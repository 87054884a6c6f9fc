"""Scores of nested entities: correct, flat and nested ones, malformed input, and `evaluate`.

What scores share with breakdowns, as that order is irrelevant, is in `test_breakdowns.py`.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data.statistics import nested_spans
from modeling_triaffine.evaluation.metric import NestedNERMetric
from modeling_triaffine.evaluation.scoring import format_scores, score_entities
from tests.helpers.scored import entities, pairs, sentences

GOLD = [
    entities((0, 5, "ORG"), (1, 2, "LOC"), (7, 8, "PER")),  # nested, nested, flat
    entities(),
    entities((0, 1, "LOC"), (0, 1, "ORG")),  # two types on one span: two flat entities
]
PREDICTED = [
    entities((0, 5, "ORG"), (7, 8, "LOC")),  # right but flat here; wrong type
    entities((2, 3, "PER")),  # nothing there
    entities((0, 1, "LOC")),
]


# ---------------------------------------------------------------------------------------------- by hand


def test_totals_by_hand():
    scores = score_entities(PREDICTED, GOLD)
    assert (scores["correct"], scores["predicted"], scores["found"], scores["gold"]) == (2, 4, 2, 5)
    assert scores["precision"] == 2 / 4
    assert scores["recall"] == 2 / 5
    assert scores["f1"] == pytest.approx(2 * 0.5 * 0.4 / 0.9)


def test_by_label_by_hand():
    by_label = score_entities(PREDICTED, GOLD)["by_label"]
    assert list(by_label) == ["LOC", "ORG", "PER"]
    assert [by_label["LOC"][key] for key in ("correct", "predicted", "gold")] == [1, 2, 2]
    assert [by_label["ORG"][key] for key in ("correct", "predicted", "gold")] == [1, 1, 2]
    assert [by_label["PER"][key] for key in ("correct", "predicted", "gold")] == [0, 1, 1]


def test_flat_and_nested_by_hand():
    scores = score_entities(PREDICTED, GOLD)
    # The organization is nested in gold and found, but stands alone among the predictions.
    assert scores["nested"]["gold"] == 2
    assert scores["nested"]["found"] == 1
    assert scores["nested"]["recall"] == 1 / 2
    assert scores["nested"]["predicted"] == 0
    assert scores["nested"]["precision"] == scores["nested"]["f1"] == 0.0
    assert (scores["flat"]["correct"], scores["flat"]["predicted"]) == (2, 4)
    assert (scores["flat"]["found"], scores["flat"]["gold"]) == (1, 3)


@pytest.mark.parametrize(
    ("spans", "nested"),
    [
        pytest.param([(0, 4), (1, 2)], [(0, 4), (1, 2)], id="inside"),
        pytest.param([(0, 4), (0, 2)], [(0, 4), (0, 2)], id="same-start"),
        pytest.param([(0, 4), (3, 4)], [(0, 4), (3, 4)], id="same-end"),
        pytest.param([(0, 3), (2, 5)], [], id="crossing"),
        pytest.param([(0, 2), (2, 4)], [], id="adjacent"),
        pytest.param([(0, 2), (0, 2)], [], id="same-span"),
        pytest.param([(0, 9), (1, 5), (4, 7), (8, 12)], [(0, 9), (1, 5), (4, 7)], id="crossing-inside"),
        pytest.param([], [], id="none"),
    ],
)
def test_nested_spans(spans, nested):
    assert nested_spans(spans) == set(nested)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair))), max_size=12))
def test_nested_spans_match_the_definition(spans):
    def contains(outer, inner):
        return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]

    assert nested_spans(spans) == {a for a in spans if any(contains(a, b) or contains(b, a) for b in spans)}


def test_nothing_anywhere_is_zero_not_an_error():
    for scores in (score_entities([], []), score_entities([[], []], [[], []])):
        assert scores["precision"] == scores["recall"] == scores["f1"] == 0.0
        assert scores["gold"] == 0
        assert scores["by_label"] == {}


def test_labels_add_rows_in_their_order_and_hide_none():
    scores = score_entities(PREDICTED, GOLD, labels=["PER", "NEVER"])
    assert list(scores["by_label"]) == ["PER", "NEVER", "LOC", "ORG"]
    assert scores["by_label"]["NEVER"]["f1"] == 0.0
    assert scores["gold"] == 5


def test_same_entity_in_another_sentence_is_not_found():
    entity = entities((0, 1, "LOC"))
    assert score_entities([entity, []], [[], entity])["correct"] == 0


def test_pipeline_form_scores_like_record_form():
    pipeline_form = [
        [{"start": e["start"], "end": e["end"], "entity_group": e["type"], "score": 0.5, "word": "w"} for e in sentence]
        for sentence in PREDICTED
    ]
    assert score_entities(pipeline_form, GOLD) == score_entities(PREDICTED, GOLD)


def test_numpy_positions_are_read():
    numpy_form = [[{"start": np.int64(0), "end": np.int32(1), "type": "LOC"}]]
    assert score_entities(numpy_form, [entities((0, 1, "LOC"))])["f1"] == 1.0


# ---------------------------------------------------------------------------------------------- properties


@given(pairs)
def test_swapping_sides_swaps_precision_and_recall(pair):
    predictions, references = pair
    there, back = score_entities(predictions, references), score_entities(references, predictions)

    def parts(scores):
        return {"": scores, "flat": scores["flat"], "nested": scores["nested"], **scores["by_label"]}

    assert parts(there).keys() == parts(back).keys()
    for part, scores in parts(there).items():
        swapped = parts(back)[part]
        assert (scores["precision"], scores["recall"]) == (swapped["recall"], swapped["precision"])
        assert (scores["correct"], scores["predicted"]) == (swapped["found"], swapped["gold"])
        assert math.isclose(scores["f1"], swapped["f1"])


@given(pairs)
def test_parts_add_up_and_ratios_stay_in_range(pair):
    scores = score_entities(*pair)
    for key in ("correct", "predicted", "found", "gold"):
        assert scores[key] == scores["flat"][key] + scores["nested"][key]
        assert scores[key] == sum(row[key] for row in scores["by_label"].values())
    assert scores["correct"] == scores["found"]
    assert all(0.0 <= scores[key] <= 1.0 for key in ("precision", "recall", "f1"))


@given(st.lists(sentences, max_size=6))
def test_gold_against_itself_is_perfect(gold):
    scores = score_entities(gold, gold)
    expected = 1.0 if any(gold) else 0.0
    assert scores["precision"] == scores["recall"] == scores["f1"] == expected


# ---------------------------------------------------------------------------------------------- malformed input


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        pytest.param({"start": 0, "type": "LOC"}, "integers start and end .* got {'start': 0", id="no-end"),
        pytest.param({"type": "LOC"}, "integers start and end", id="no-span"),
        pytest.param({"start": 0, "end": 1}, "exactly one of type and entity_group", id="no-type"),
        pytest.param({"start": 0, "end": 1, "type": "LOC", "entity_group": "LOC"}, "exactly one", id="two-types"),
        pytest.param({"start": 0, "end": 1, "type": ""}, "non-empty string", id="empty-type"),
        pytest.param({"start": 0, "end": 1, "type": 3}, "non-empty string", id="type-no-string"),
        pytest.param({"start": 1, "end": 1, "type": "LOC"}, "0 <= start < end", id="empty-span"),
        pytest.param({"start": -1, "end": 1, "type": "LOC"}, "0 <= start < end", id="negative"),
        pytest.param({"start": 0.0, "end": 1, "type": "LOC"}, "integers start and end .* 0.0", id="float"),
        pytest.param({"start": 0, "end": None, "type": "LOC"}, "integers start and end .* None", id="none"),
        pytest.param((0, 1, "LOC"), "a dict with", id="tuple"),
    ],
)
def test_errors_name_side_sentence_and_entity(entity, message):
    good = entities((0, 1, "LOC"))
    with pytest.raises(ValueError, match=rf"^predictions, sentence 1, entity 1.*{message}"):
        score_entities([good, [*good, entity]], [good, good])
    with pytest.raises(ValueError, match=rf"^references, sentence 0, entity 0.*{message}"):
        score_entities([good], [[entity]])


@pytest.mark.parametrize("sentence", [None, "LOC", {"start": 0, "end": 1, "type": "LOC"}, 3])
def test_sentence_must_be_a_list(sentence):
    with pytest.raises(ValueError, match="references, sentence 1: expected a list of entities"):
        score_entities([[], []], [[], sentence])


# ---------------------------------------------------------------------------------------------- table


def test_table_rows_and_numbers():
    table = format_scores(score_entities(PREDICTED, GOLD))
    header, *rows, footnote = table.splitlines()
    assert footnote.startswith("flat, nested: precision by")
    assert header.split() == ["precision", "recall", "F1", "predicted", "gold"]
    assert [row.split()[0] for row in rows] == ["all", "LOC", "ORG", "PER", "flat", "nested"]
    assert rows[0].split() == ["all", "50.00", "40.00", "44.44", "4", "5"]
    assert len({len(line) for line in (header, *rows)}) == 1


def test_undefined_ratios_are_dashes():
    gold = [entities((0, 4, "ORG"), (1, 2, "LOC")), entities((0, 1, "PER"))]
    # ORG is found as a flat entity, though nested in gold; no LOC is predicted, and no MISC is in gold.
    predicted = [entities((0, 4, "ORG")), entities((1, 2, "MISC"))]
    table = format_scores(score_entities(predicted, gold))
    assert [line.split() for line in table.splitlines()[1:-1]] == [
        ["all", "50.00", "33.33", "40.00", "2", "3"],
        ["LOC", "–", "0.00", "–", "0", "1"],
        ["MISC", "0.00", "–", "–", "1", "0"],
        ["ORG", "100.00", "100.00", "100.00", "1", "1"],
        ["PER", "–", "0.00", "–", "0", "1"],
        ["flat", "50.00", "0.00", "0.00", "2", "1"],
        ["nested", "–", "–", "–", "0", "2"],
    ]


def test_a_label_called_flat_differs_from_the_row_flat():
    gold = [entities((0, 1, "flat"))]
    rows = format_scores(score_entities(gold, gold)).splitlines()
    assert [row[:6] for row in rows[1:-1]] == ["all   ", "  flat", "flat  ", "nested"]


# ---------------------------------------------------------------------------------------------- evaluate


@pytest.fixture
def metric(tmp_path):
    return NestedNERMetric(cache_dir=str(tmp_path))


def test_metric_in_pieces(metric):
    metric.add_batch(predictions=[], references=[])
    metric.add(prediction=PREDICTED[0], reference=GOLD[0])
    metric.add_batch(predictions=PREDICTED[1:2], references=GOLD[1:2])  # no gold entity in this batch
    metric.add_batch(predictions=PREDICTED[2:], references=GOLD[2:])
    assert metric.compute(labels=["NEVER"]) == score_entities(PREDICTED, GOLD, labels=["NEVER"])


def test_metric_is_empty_after_compute(metric):
    metric.compute(predictions=PREDICTED, references=GOLD)
    assert metric.compute(predictions=GOLD, references=GOLD)["f1"] == 1.0


@given(pairs)
def test_metric_matches_scoring(pair):
    predictions, references = pair
    metric = NestedNERMetric(keep_in_memory=True)
    assert metric.compute(predictions=predictions, references=references) == score_entities(predictions, references)


def test_metric_takes_character_predictions(metric):
    predicted = [[{"entity_group": "LOC", "score": 0.9, "word": "Velmar", "start": 3, "end": 9}]]
    assert metric.compute(predictions=predicted, references=[entities((3, 9, "LOC"))])["f1"] == 1.0


def test_metric_rejects_what_arrow_would_truncate(metric):
    with pytest.raises(ValueError, match=r"predictions, sentence 0, entity 0: .*integers.*0\.5"):
        metric.add_batch(predictions=[[{"start": 0.5, "end": 1, "type": "LOC"}]], references=[[]])


@pytest.mark.parametrize(("predictions", "references"), [(2, 1), (0, 1), (1, 0)])
def test_metric_rejects_different_numbers_of_sentences(metric, predictions, references):
    with pytest.raises(ValueError, match=f"predictions for {predictions} sentences and references for {references}"):
        metric.add_batch(predictions=[[]] * predictions, references=[[]] * references)


def test_metric_rejects_predictions_without_references(metric):
    with pytest.raises(ValueError, match="references are missing"):
        metric.add_batch(predictions=PREDICTED)


def test_metric_over_shards(tmp_path):
    """Two metrics that share a folder, as those of two processes do: each adds its shard, the first one computes."""

    def run(process_id):
        metric = NestedNERMetric(
            num_process=2, process_id=process_id, experiment_id="shards", cache_dir=str(tmp_path), timeout=60
        )
        metric.add_batch(predictions=PREDICTED[process_id::2], references=GOLD[process_id::2])
        return metric.compute()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, range(2))
    assert first == score_entities(PREDICTED, GOLD)
    assert second is None
