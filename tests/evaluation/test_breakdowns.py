"""Breakdowns of scores by length, by depth, by kind of error, by candidates: by hand, and that parts add up."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data.statistics import nesting_depths
from modeling_triaffine.evaluation.error_analysis import (
    GOLD_OUTCOMES,
    PREDICTED_OUTCOMES,
    confusion,
    sentences_with_errors,
)
from modeling_triaffine.evaluation.scoring import candidate_recall, score_entities, scores_by_depth, scores_by_length
from tests.helpers.scored import entities, pairs, sentences

COUNTS = ("correct", "predicted", "found", "gold")


def counts(row):
    return tuple(row[key] for key in COUNTS)


breakdowns = pytest.mark.parametrize("breakdown", [score_entities, scores_by_length, scores_by_depth, confusion])


# ---- by length


def test_lengths_by_hand():
    gold = [entities((0, 5, "ORG"), (1, 2, "LOC"), (7, 8, "PER")), entities((0, 40, "ORG"))]
    predicted = [entities((0, 5, "ORG"), (7, 8, "LOC"), (0, 2, "LOC")), []]
    rows = scores_by_length(predicted, gold)
    assert {name: counts(row) for name, row in rows.items()} == {
        "1": (0, 1, 0, 2),
        "2": (0, 1, 0, 0),
        "5-8": (1, 1, 1, 1),
        "17+": (0, 0, 0, 1),
    }
    assert (rows["5-8"]["precision"], rows["5-8"]["recall"], rows["5-8"]["f1"]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("length", "bucket"),
    [(1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (8, "5-8"), (9, "9-16"), (16, "9-16"), (17, "17+")],
)
def test_every_length_has_its_bucket(length, bucket):
    assert list(scores_by_length([[]], [entities((3, 3 + length, "LOC"))])) == [bucket]


@given(pairs)
def test_lengths_are_rising(pair):
    names = list(scores_by_length(*pair))
    assert names == [name for name in ("1", "2", "3-4", "5-8", "9-16", "17+") if name in names]


# ---- by depth


def test_depths_by_hand():
    gold = [entities((0, 5, "ORG"), (1, 3, "LOC"), (1, 2, "PER"), (4, 7, "LOC"))]  # the last one crosses the first
    # Inside two gold entities; inside none (it contains them); the same span as one at depth 2; inside the crossing.
    predicted = [entities((2, 3, "PER"), (0, 9, "ORG"), (1, 3, "ORG"), (5, 6, "LOC"), (1, 2, "PER"))]
    rows = scores_by_depth(predicted, gold)
    assert {name: counts(row) for name, row in rows.items()} == {
        "1": (0, 1, 0, 2),
        "2": (0, 2, 0, 1),
        "3": (1, 2, 1, 1),
    }


def test_two_types_on_one_span_are_not_inside_each_other():
    gold = [entities((0, 2, "ORG"), (0, 2, "LOC"))]
    assert {name: counts(row) for name, row in scores_by_depth(gold, gold).items()} == {"1": (2, 2, 2, 2)}


@given(st.lists(sentences, max_size=5))
def test_depth_of_gold_is_that_of_the_statistics(gold):
    expected: dict[str, int] = {}
    for sentence in gold:
        distinct = {(entity["start"], entity["end"], entity["type"]) for entity in sentence}
        depths = nesting_depths([entity[:2] for entity in distinct])
        for start, end, _ in distinct:
            expected[str(depths[start, end])] = expected.get(str(depths[start, end]), 0) + 1
    assert {depth: row["gold"] for depth, row in scores_by_depth([[] for _ in gold], gold).items()} == expected


# ---- errors


@pytest.mark.parametrize(
    ("predicted", "gold", "of_gold", "of_prediction"),
    [
        pytest.param((2, 4, "LOC"), (2, 4, "LOC"), "right", "right", id="right"),
        pytest.param((2, 4, "ORG"), (2, 4, "LOC"), "wrong_type", "wrong_type", id="type"),
        pytest.param((2, 5, "LOC"), (2, 4, "LOC"), "wrong_boundary", "wrong_boundary", id="longer"),
        pytest.param((3, 4, "LOC"), (2, 4, "LOC"), "wrong_boundary", "wrong_boundary", id="shorter"),
        pytest.param((3, 6, "LOC"), (2, 4, "LOC"), "wrong_boundary", "wrong_boundary", id="crossing"),
        pytest.param((2, 5, "ORG"), (2, 4, "LOC"), "wrong_boundary_and_type", "wrong_boundary_and_type", id="both"),
        pytest.param((4, 5, "LOC"), (2, 4, "LOC"), "missing", "spurious", id="adjacent"),
        pytest.param((0, 1, "LOC"), (2, 4, "LOC"), "missing", "spurious", id="apart"),
    ],
)
def test_outcome_of_one_entity(predicted, gold, of_gold, of_prediction):
    errors = confusion([entities(predicted)], [entities(gold)])
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
    assert left_out["by_gold_label"]["LOC"] == dict.fromkeys(GOLD_OUTCOMES, 0) | {"right": 1, "missing": 1}
    added = confusion([entities(inner, outer)], [entities(inner)])
    assert added["by_predicted_label"]["LOC"] == dict.fromkeys(PREDICTED_OUTCOMES, 0) | {"right": 1, "spurious": 1}
    # Of two types on one span the model can find one; the other is missing, not confused with the first.
    second_type = confusion([entities((0, 1, "LOC"))], [entities((0, 1, "LOC"), (0, 1, "ORG"))])
    assert second_type["by_gold_label"]["ORG"]["missing"] == 1
    assert second_type["types"]["ORG"] == {"LOC": 0, "ORG": 0}


def test_labels_have_rows_in_their_order():
    errors = confusion([entities((0, 1, "LOC"))], [[]], labels=["PER", "NEVER"])
    for table in errors.values():
        assert list(table) == ["PER", "NEVER", "LOC"]
    assert list(errors["types"]["PER"]) == ["PER", "NEVER", "LOC"]
    assert errors["by_predicted_label"]["LOC"]["spurious"] == 1


@given(pairs)
def test_errors_add_up(pair):
    by_label, errors = score_entities(*pair)["by_label"], confusion(*pair)
    assert set(errors["by_gold_label"]) == set(errors["by_predicted_label"]) == set(by_label)
    for label, row in by_label.items():
        gold, predicted = errors["by_gold_label"][label], errors["by_predicted_label"][label]
        assert (sum(gold.values()), sum(predicted.values())) == (row["gold"], row["predicted"])
        assert gold["right"] == predicted["right"] == row["correct"] == errors["types"][label][label]
        wrong_types = sum(errors["types"][label].values()) - errors["types"][label][label]
        assert gold["wrong_type"] == wrong_types


@given(pairs)
def test_swapping_sides_swaps_the_tables(pair):
    predictions, references = pair
    there, back = confusion(predictions, references), confusion(references, predictions)

    def renamed(row):
        return {name.replace("missing", "spurious"): count for name, count in row.items()}

    assert {label: renamed(row) for label, row in there["by_gold_label"].items()} == back["by_predicted_label"]


# ---- errors, one by one


def as_records(references):
    return [
        {"id": f"s{number}", "tokens": [f"w{word}" for word in range(12)], "entities": gold}
        for number, gold in enumerate(references)
    ]


def as_triple(mention):
    return mention and (mention.start, mention.end, mention.type)


def test_errors_by_hand():
    gold = [
        entities((0, 1, "LOC")),
        entities((0, 5, "ORG"), (1, 2, "LOC"), (3, 5, "PER"), (7, 8, "PER")),
        entities((0, 3, "ORG")),
    ]
    predicted = [
        entities((0, 1, "LOC")),
        entities((0, 4, "ORG"), (1, 2, "LOC"), (7, 8, "LOC"), (9, 10, "LOC")),
        entities((0, 2, "ORG"), (2, 3, "LOC")),
    ]
    first, second = sentences_with_errors(predicted, as_records(gold))
    assert (first.id, second.id) == ("s1", "s2")  # s0 has none, s1 the most
    assert [as_triple(mention) for mention in first.gold] == [
        (0, 5, "ORG"),
        (1, 2, "LOC"),
        (3, 5, "PER"),
        (7, 8, "PER"),
    ]
    assert [(error.kind, as_triple(error.gold), as_triple(error.predicted)) for error in first.errors] == [
        ("wrong_boundary", (0, 5, "ORG"), (0, 4, "ORG")),
        ("wrong_boundary_and_type", (3, 5, "PER"), (0, 4, "ORG")),
        ("wrong_type", (7, 8, "PER"), (7, 8, "LOC")),
        ("spurious", None, (9, 10, "LOC")),
    ]
    assert first.errors[0].gold.text == "w0 w1 w2 w3 w4"
    assert [(error.kind, as_triple(error.predicted)) for error in second.errors] == [
        ("wrong_boundary", (0, 2, "ORG")),
        ("wrong_boundary_and_type", (2, 3, "LOC")),
    ]


def test_of_two_errors_of_a_kind_the_one_with_more_shared_words_comes_first():
    predicted = [entities((0, 1, "ORG"), (2, 5, "ORG"))]
    [sentence] = sentences_with_errors(predicted, as_records([entities((0, 5, "ORG"))]))
    assert [(error.kind, as_triple(error.gold), as_triple(error.predicted)) for error in sentence.errors] == [
        ("wrong_boundary", (0, 5, "ORG"), (2, 5, "ORG")),
        ("wrong_boundary", (0, 5, "ORG"), (0, 1, "ORG")),
    ]


@given(pairs)
def test_errors_are_those_that_are_counted(pair):
    predictions, references = pair
    errors, listed = confusion(*pair), sentences_with_errors(predictions, as_records(references))
    numbers = [len(sentence.errors) for sentence in listed]
    assert numbers == sorted(numbers, reverse=True)
    assert all(numbers)
    counted = Counter()
    for sentence in listed:
        for error in sentence.errors:
            assert (error.kind == "missing") == (error.predicted is None)
            assert (error.kind == "spurious") == (error.gold is None)
            counted[error.kind, (error.gold or error.predicted).type] += 1
        gold, predicted = set(sentence.gold), set(sentence.predicted)
        assert {error.gold for error in sentence.errors} - {None} == gold - predicted
        assert {error.predicted for error in sentence.errors} - {None} == predicted - gold
    for kind, side in (("missing", "by_gold_label"), ("spurious", "by_predicted_label")):
        assert all(counted[kind, label] == row[kind] for label, row in errors[side].items())


# ---- candidates


def test_candidates_by_hand():
    gold = [entities((0, 3, "ORG"), (0, 3, "LOC"), (1, 2, "LOC")), entities((0, 1, "LOC"))]
    assert candidate_recall([[(0, 3), (4, 5)], []], gold) == {"found": 2, "gold": 4, "recall": 0.5}
    assert candidate_recall([[], [(0, 3)]], gold)["found"] == 0  # those of another sentence do not count
    assert candidate_recall([[]], [[]]) == {"found": 0, "gold": 0, "recall": 0.0}


@given(pairs)
def test_recall_is_at_most_that_of_the_spans_it_is_chosen_from(pair):
    predictions, references = pair
    spans = [[(entity["start"], entity["end"]) for entity in sentence] for sentence in predictions]
    bound, scores = candidate_recall(spans, references), score_entities(predictions, references)
    assert bound["gold"] == scores["gold"]
    assert bound["recall"] >= scores["recall"]


# ---- all of them


@pytest.mark.parametrize("breakdown", [scores_by_length, scores_by_depth])
@given(pair=pairs)
def test_parts_add_up_to_the_whole(breakdown, pair):
    rows, whole = breakdown(*pair), score_entities(*pair)
    for key in COUNTS:
        assert sum(row[key] for row in rows.values()) == whole[key]
    for row in rows.values():
        assert row["correct"] == row["found"]
        assert row["predicted"] + row["gold"] > 0


@breakdowns
@given(pair=pairs, rng=st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_repetition_counts_once(breakdown, pair, rng):
    predictions, references = pair
    order = rng.sample(range(len(references)), len(references))
    shuffled = [[rng.sample(side[row] * 2, 2 * len(side[row])) for row in order] for side in (predictions, references)]
    assert breakdown(*shuffled) == breakdown(predictions, references)
    assert list(breakdown(*shuffled)) == list(breakdown(predictions, references))


@breakdowns
def test_malformed_input(breakdown):
    with pytest.raises(ValueError, match="predictions for 2 sentences and references for 1"):
        breakdown([[], []], [[]])
    with pytest.raises(ValueError, match=r"references, sentence 1, entity 0: .* start and end"):
        breakdown([[], []], [[], [{"start": 1, "type": "LOC"}]])


def test_candidates_need_the_same_sentences():
    with pytest.raises(ValueError, match="predictions for 2 sentences and references for 1"):
        candidate_recall([[], []], [[]])
