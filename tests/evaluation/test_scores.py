"""Scores of nested entities, their breakdowns and errors, `evaluate`: by hand, that parts add up, malformed input."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.evaluation import candidate_recall, confusion, score_entities, scores_by_depth, scores_by_length
from modeling_triaffine.evaluation.metric import NestedNERMetric
from modeling_triaffine.evaluation.scores import GOLD_OUTCOMES, PARTS, PREDICTED_OUTCOMES, error_examples, format_scores


def entities(*triples):
    return [{"start": start, "end": end, "type": label} for start, end, label in triples]


sentence = st.lists(  # overlapping, nested and repeated entities
    st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from(["LOC", "ORG", "PER"])).map(
        lambda entity: {"start": entity[0], "end": entity[0] + entity[1], "type": entity[2]}
    ),
    max_size=7,
)
# Predictions and references with one list per sentence.
pairs = st.lists(st.tuples(sentence, sentence), max_size=5).map(lambda rows: tuple(zip(*rows, strict=True)) or ((), ()))
COUNTS = ("correct", "predicted", "found", "gold")
GOLD = [
    entities((0, 5, "ORG"), (1, 2, "LOC"), (7, 8, "PER")),  # nested, nested, flat
    entities(),
    entities((0, 1, "LOC"), (0, 1, "ORG")),  # two types on one span: two flat entities
]
PREDICTED = [
    entities((0, 5, "ORG"), (7, 8, "LOC")),  # right but flat here; wrong type
    entities((2, 3, "PER"), (0, 1, "LOC")),  # nothing there; in another sentence
    entities((0, 1, "LOC")),
]


def counts(row):
    return tuple(row[key] for key in COUNTS)


def counts_by_row(rows):
    return {name: counts(row) for name, row in rows.items()}


# ---- scores


def test_scores_by_hand():
    scores = score_entities(PREDICTED, GOLD)
    assert counts(scores) == (2, 5, 2, 5)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (2 / 5, 2 / 5, pytest.approx(2 / 5))
    assert counts_by_row(scores["by_label"]) == {"LOC": (1, 3, 1, 2), "ORG": (1, 1, 1, 2), "PER": (0, 1, 0, 1)}
    # The organization is nested in gold and found, but stands alone among the predictions.
    assert (counts(scores["flat"]), counts(scores["nested"])) == ((2, 5, 1, 3), (0, 0, 1, 2))
    assert (scores["nested"]["precision"], scores["nested"]["recall"], scores["nested"]["f1"]) == (0, 1 / 2, 0)


def test_entities_of_pipelines_and_numpy_score_like_those_of_records():
    pipeline_form = [
        [{"start": np.int64(e["start"]), "end": e["end"], "entity_group": e["type"], "score": 0.5} for e in sentence]
        for sentence in PREDICTED
    ]
    assert score_entities(pipeline_form, GOLD) == score_entities(PREDICTED, GOLD)


# ---- by length, by depth, candidates


def test_lengths_by_hand():
    gold = [entities((0, 5, "ORG"), (1, 2, "LOC"), (7, 8, "PER")), entities((0, 40, "ORG"))]
    predicted = [entities((0, 5, "ORG"), (7, 8, "LOC"), (0, 2, "LOC")), []]
    rows = scores_by_length(predicted, gold)
    assert counts_by_row(rows) == {"1": (0, 1, 0, 2), "2": (0, 1, 0, 0), "5-8": (1, 1, 1, 1), "17+": (0, 0, 0, 1)}
    assert (rows["5-8"]["precision"], rows["5-8"]["recall"], rows["5-8"]["f1"]) == (1.0, 1.0, 1.0)
    names = {1: "1", 2: "2", 3: "3-4", 4: "3-4", 5: "5-8", 8: "5-8", 9: "9-16", 16: "9-16", 17: "17+"}
    for length, name in names.items():
        assert list(scores_by_length([[]], [entities((3, 3 + length, "LOC"))])) == [name]


def test_depths_by_hand():
    gold = [entities((0, 5, "ORG"), (1, 3, "LOC"), (1, 2, "PER"), (4, 7, "LOC"))]  # the last one crosses the first
    # Inside two gold entities; inside none (it contains them); the same span as one at depth 2; inside the crossing.
    predicted = [entities((2, 3, "PER"), (0, 9, "ORG"), (1, 3, "ORG"), (5, 6, "LOC"), (1, 2, "PER"))]
    rows = scores_by_depth(predicted, gold)
    assert counts_by_row(rows) == {"1": (0, 1, 0, 2), "2": (0, 2, 0, 1), "3": (1, 2, 1, 1)}
    two_types = [entities((0, 2, "ORG"), (0, 2, "LOC"))]  # on one span, which are not inside each other
    assert counts_by_row(scores_by_depth(two_types, two_types)) == {"1": (2, 2, 2, 2)}


def test_candidates_by_hand():
    gold = [entities((0, 3, "ORG"), (0, 3, "LOC"), (1, 2, "LOC")), entities((0, 1, "LOC"))]
    assert candidate_recall([[(0, 3), (4, 5)], []], gold) == {"found": 2, "gold": 4, "recall": 0.5}
    assert candidate_recall([[], [(0, 3)]], gold)["found"] == 0  # those of another sentence do not count
    assert candidate_recall([[]], [[]]) == {"found": 0, "gold": 0, "recall": 0.0}


# ---- errors


@pytest.mark.parametrize(
    ("predicted", "of_gold", "of_prediction"),
    [
        ((2, 4, "LOC"), "correct", "correct"),
        ((2, 4, "ORG"), "wrong_type", "wrong_type"),
        ((2, 5, "LOC"), "wrong_boundary", "wrong_boundary"),
        ((3, 4, "LOC"), "wrong_boundary", "wrong_boundary"),
        ((3, 6, "LOC"), "wrong_boundary", "wrong_boundary"),
        ((2, 5, "ORG"), "wrong_boundary_and_type", "wrong_boundary_and_type"),
        ((4, 5, "LOC"), "missing", "spurious"),
    ],
    ids=str,
)
def test_outcome_of_one_entity(predicted, of_gold, of_prediction):
    errors = confusion([entities(predicted)], [entities((2, 4, "LOC"))])
    assert errors["by_gold_label"]["LOC"] == {name: int(name == of_gold) for name in GOLD_OUTCOMES}
    expected = {name: int(name == of_prediction) for name in PREDICTED_OUTCOMES}
    assert errors["by_predicted_label"][predicted[2]] == expected


def test_the_first_condition_counts():
    gold = [entities((2, 4, "LOC"))]
    predicted = [entities((2, 4, "PER"), (2, 4, "ORG"), (2, 5, "LOC"), (0, 3, "ORG"))]
    errors = confusion(predicted, gold)
    assert errors["by_gold_label"]["LOC"]["wrong_type"] == 1
    assert errors["types"]["LOC"] == {"LOC": 0, "ORG": 1, "PER": 0}
    boundary = confusion([predicted[0][2:]], gold)
    assert boundary["by_gold_label"]["LOC"]["wrong_boundary"] == 1
    assert boundary["by_predicted_label"]["ORG"]["wrong_boundary_and_type"] == 1


def test_correct_predictions_explain_no_error():
    inner, outer = (1, 2, "LOC"), (0, 5, "LOC")
    left_out = confusion([entities(inner)], [entities(inner, outer)])
    assert left_out["by_gold_label"]["LOC"] == dict.fromkeys(GOLD_OUTCOMES, 0) | {"correct": 1, "missing": 1}
    added = confusion([entities(inner, outer)], [entities(inner)])
    assert added["by_predicted_label"]["LOC"] == dict.fromkeys(PREDICTED_OUTCOMES, 0) | {"correct": 1, "spurious": 1}
    # Of two types on one span the model can find one; the other is missing, not confused with the first.
    second_type = confusion([entities((0, 1, "LOC"))], [entities((0, 1, "LOC"), (0, 1, "ORG"))])
    assert second_type["by_gold_label"]["ORG"]["missing"] == 1
    assert second_type["types"]["ORG"] == {"LOC": 0, "ORG": 0}


@given(pairs)
def test_errors_add_up(pair):
    by_label, errors = score_entities(*pair)["by_label"], confusion(*pair)
    assert set(errors["by_gold_label"]) == set(errors["by_predicted_label"]) == set(by_label)
    for label, row in by_label.items():
        gold, predicted = errors["by_gold_label"][label], errors["by_predicted_label"][label]
        assert (sum(gold.values()), sum(predicted.values())) == (row["gold"], row["predicted"])
        assert gold["correct"] == predicted["correct"] == row["correct"] == errors["types"][label][label]
        assert gold["wrong_type"] == sum(errors["types"][label].values()) - errors["types"][label][label]


def distinct(mentions):
    """The entities of one side, each once, sorted by start, then longest first."""
    triples = {(mention["start"], mention["end"], mention["type"]) for mention in mentions}
    return entities(*sorted(triples, key=lambda entity: (entity[0], -entity[1], entity[2])))


@given(pairs)
def test_sentences_with_errors_have_what_only_one_side_has(pair):
    expected = []
    for number, (predicted, gold) in enumerate(zip(*map(partial(map, distinct), pair), strict=True)):
        of_one_side = [mention for mention in predicted + gold if (mention in predicted) != (mention in gold)]
        example = {"id": number, "tokens": ["w"], "gold": gold, "predicted": predicted, "errors": len(of_one_side)}
        expected += [example] if of_one_side else []
    records = [{"id": number, "tokens": ["w"], "entities": gold} for number, gold in enumerate(pair[1])]
    examples = error_examples(pair[0], records)
    assert examples == sorted(expected, key=lambda example: -example["errors"])  # ties in the corpus's order


# ---- all of them

breakdowns = pytest.mark.parametrize("breakdown", [score_entities, scores_by_length, scores_by_depth, confusion])


@given(pair=pairs)
def test_parts_add_up_to_the_whole_and_ratios_stay_in_range(pair):
    whole = score_entities(*pair)
    lengths, depths, nesting = scores_by_length(*pair), scores_by_depth(*pair), [whole["flat"], whole["nested"]]
    for rows in (lengths.values(), depths.values(), whole["by_label"].values(), nesting):
        assert tuple(sum(row[key] for row in rows) for key in COUNTS) == counts(whole)
    for row in (*lengths.values(), *depths.values(), *whole["by_label"].values(), whole):
        assert row["correct"] == row["found"]
        assert all(0.0 <= row[key] <= 1.0 for key in ("precision", "recall", "f1"))
    assert list(lengths) == [name for name in ("1", "2", "3-4", "5-8", "9-16", "17+") if name in lengths]


@breakdowns
@given(pair=pairs, rng=st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_repetition_counts_once(breakdown, pair, rng):
    predictions, references = pair
    order = rng.sample(range(len(references)), len(references))
    shuffled = [[rng.sample(side[row] * 2, 2 * len(side[row])) for row in order] for side in (predictions, references)]
    assert breakdown(*shuffled) == breakdown(predictions, references)
    assert list(breakdown(*shuffled)) == list(breakdown(predictions, references))


# ---- malformed input


@breakdowns
def test_both_sides_need_the_same_sentences(breakdown):
    with pytest.raises(ValueError, match="for 2 sentences, references for 1"):
        breakdown([[], []], [[]])


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({"start": 0, "type": "LOC"}, "integers start and end .* got {'start': 0"),
        ({"start": 0, "end": 1}, "exactly one of type and entity_group"),
        ({"start": 1, "end": 1, "type": "LOC"}, "0 <= start < end"),
        ((0, 1, "LOC"), "a dict with"),
    ],
)
def test_errors_name_side_sentence_and_entity(entity, message):
    good = entities((0, 1, "LOC"))
    with pytest.raises(ValueError, match=rf"^predictions, sentence 1, entity 1.*{message}"):
        score_entities([good, [*good, entity]], [good, good])
    with pytest.raises(ValueError, match=rf"^references, sentence 0, entity 0.*{message}"):
        score_entities([good], [[entity]])


# ---- table


def test_undefined_ratios_are_dashes():
    gold = [entities((0, 4, "ORG"), (1, 2, "LOC")), entities((0, 1, "PER"))]
    # ORG is found as a flat entity, though nested in gold; no LOC is predicted, and no MISC is in gold.
    table = format_scores(score_entities([entities((0, 4, "ORG")), entities((1, 2, "MISC"))], gold))
    assert [line.split() for line in table.splitlines()[1:8]] == [
        ["all", "50.00", "33.33", "40.00", "2", "3"],
        ["LOC", "–", "0.00", "0.00", "0", "1"],
        ["MISC", "0.00", "–", "–", "1", "0"],
        ["ORG", "100.00", "100.00", "100.00", "1", "1"],
        ["PER", "–", "0.00", "0.00", "0", "1"],
        ["flat", "50.00", "0.00", "0.00", "2", "1"],
        ["nested", "–", "–", "–", "0", "2"],
    ]
    assert "No gold entity is of type MISC: the 1 predictions of it count as wrong." in table
    assert "No gold entity" not in format_scores(score_entities(gold, gold))


@pytest.mark.contract
def test_metrics_of_a_run_are_flat():
    scores = score_entities(PREDICTED, GOLD)
    metrics = scores.metrics()
    ratios = {f"{part}{ratio}" for part in ("", "flat_", "nested_") for ratio in ("precision", "recall", "f1")}
    assert {*metrics} == {*ratios, "f1_LOC", "f1_ORG", "f1_PER", "predicted"}
    assert (metrics["nested_recall"], metrics["f1_LOC"], metrics["predicted"]) == (0.5, pytest.approx(0.4), 5)
    assert all(metrics[part.metric("f1")] == row["f1"] for part, row in scores.by_part().items())
    assert list(scores.by_part()) == list(PARTS)


# ---- evaluate


def test_metric_in_pieces():
    metric = NestedNERMetric(keep_in_memory=True)
    metric.add_batch(predictions=[], references=[])
    metric.add(prediction=PREDICTED[0], reference=GOLD[0])
    metric.add_batch(predictions=PREDICTED[1:2], references=GOLD[1:2])  # no gold entity in this batch
    metric.add(prediction=PREDICTED[2], reference=GOLD[2])
    assert metric.compute(labels=["NEVER"]) == score_entities(PREDICTED, GOLD, labels=["NEVER"])
    assert metric.compute(predictions=GOLD, references=GOLD)["f1"] == 1.0  # empty after each result


def test_metric_rejects_what_arrow_would_truncate_or_lose():
    metric = NestedNERMetric(keep_in_memory=True)
    with pytest.raises(ValueError, match=r"predictions, sentence 0, entity 0: .*integers.*0\.5"):
        metric.add_batch(predictions=[[{"start": 0.5, "end": 1, "type": "LOC"}]], references=[[]])
    for predictions, references in ((2, 1), (0, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"for {predictions} sentences, references for {references}"):
            metric.add_batch(predictions=[[]] * predictions, references=[[]] * references)
