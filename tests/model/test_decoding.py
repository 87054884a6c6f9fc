"""Scores to entities: argmax, thresholds, overlap policies."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.decoding_triaffine import FoundInText, entity_mask, find_entities, thresholds_of
from modeling_triaffine.model.kinds_triaffine import OVERLAPS, resolve_overlaps
from modeling_triaffine.model.text_triaffine import Piece

ID2LABEL = {0: "DNA", 1: "protein", 2: "None"}


def candidate_output():
    probabilities = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.1, 0.8, 0.1]], [[0.9, 0.05, 0.05]] * 3])
    candidates = torch.tensor([[[0, 2], [1, 1], [2, 2]], [[0, 0], [0, 0], [0, 0]]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    return SimpleNamespace(logits=probabilities.log(), candidates=candidates, candidate_mask=mask)


def decode(output, threshold=None, **fields):
    return find_entities(output, TriaffineConfig(id2label=ID2LABEL, hidden_size=4, **fields), threshold)


def spans(entities):
    return [(entity["start"], entity["end"], entity["type"]) for entity in entities]


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("temperature", [0.2, 1.7, 5.0])
def test_a_temperature_changes_probabilities_and_not_what_is_found_without_thresholds(multi_label, temperature):
    """Also where many labels are each unlikely, one of which a high temperature makes likelier than none."""
    torch.manual_seed(0)
    names = {**{label: f"L{label}" for label in range(40)}, 40: "None"}
    logits = 3 * torch.randn(1, 200, 41 - multi_label) - 6
    places = torch.arange(200).view(1, -1, 1).expand(1, -1, 2)
    output = SimpleNamespace(logits=logits, candidates=places, candidate_mask=torch.ones(1, 200) > 0)
    fields = {"id2label": names, "hidden_size": 4, "multi_label": multi_label}
    (plain,), (scaled,) = (find_entities(output, TriaffineConfig(**fields, temperature=t)) for t in (1.0, temperature))
    assert spans(plain) == spans(scaled) != []
    assert any(abs(one["score"] - other["score"]) > 0.05 for one, other in zip(plain, scaled, strict=True))


@pytest.mark.parametrize("threshold", [None, 0.0, 1e-30, 0.2, 0.9999, 1.0, {"L0": 0.01, "L1": 0.99}])
@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_no_span_is_left_out_that_a_threshold_accepts(threshold, temperature):
    torch.manual_seed(0)
    logits = 30 * torch.randn(1, 2000, 4) * torch.rand(1, 2000, 1)
    fields = {"id2label": {0: "L0", 1: "L1", 2: "L2", 3: "None"}, "hidden_size": 4, "temperature": temperature}
    config = TriaffineConfig(**fields)
    places = torch.arange(2000).view(1, -1, 1).expand(1, -1, 2)
    output = SimpleNamespace(logits=logits, candidates=places, candidate_mask=torch.ones(1, 2000) > 0)
    expected = entity_mask(logits[0], thresholds_of(config, threshold), False, temperature).any(-1).nonzero()
    (found,) = find_entities(output, config, threshold)
    assert [entity["start"] for entity in found] == expected.flatten().tolist() != []


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        ({}, [(0, 3, "DNA"), (2, 3, "protein")]),
        (0.25, [(0, 3, "DNA"), (1, 2, "protein"), (2, 3, "protein")]),  # also where None is likelier
        (0.75, [(2, 3, "protein")]),
        ({"protein": 0.9}, [(0, 3, "DNA")]),
        ({"protein": 0.25}, [(0, 3, "DNA"), (1, 2, "protein"), (2, 3, "protein")]),
        # A span's best label alone counts, though the threshold of another one is lower.
        ({"DNA": 0.8, "protein": 0.15}, [(1, 2, "protein"), (2, 3, "protein")]),
    ],
)
def test_thresholds_for_all_labels_and_by_label(threshold, expected):
    first, _ = decode(candidate_output(), threshold=threshold)
    assert spans(first) == expected


@pytest.mark.parametrize("threshold", [None, 0.25, {"DNA": 0.6}, {"protein": 0.6}])
def test_thresholds_and_temperature_default_to_the_configuration(threshold):
    fields = {"temperature": 2.0, "label_thresholds": {"protein": 0.3}}
    by_label = {"protein": 0.3, **threshold} if isinstance(threshold, dict) else threshold or {"protein": 0.3}
    halved = candidate_output()
    halved.logits = halved.logits / 2
    assert decode(candidate_output(), threshold, **fields) == decode(halved, by_label)
    scores = {entity["score"] for entity in decode(candidate_output(), 0.0, **fields)[0]}
    assert max(scores) == pytest.approx(0.8**0.5 / (0.8**0.5 + 2 * 0.1**0.5))


def test_several_labels_of_a_span_are_found_each_by_its_threshold():
    probabilities = torch.tensor([[[0.7, 0.6], [0.1, 0.3], [0.0, 0.8]]])
    output = candidate_output()
    output.logits, output.candidates = probabilities.logit(), output.candidates[:1]
    output.candidate_mask = output.candidate_mask[:1]

    def found(threshold, overlap="all"):
        return spans(resolve_overlaps(decode(output, threshold, multi_label=True)[0], overlap))

    assert found(None) == [(0, 3, "DNA"), (0, 3, "protein"), (2, 3, "protein")]
    assert found({"protein": 0.25}) == [(0, 3, "DNA"), (0, 3, "protein"), (1, 2, "protein"), (2, 3, "protein")]
    assert found(0.65) == [(0, 3, "DNA"), (2, 3, "protein")]
    # The labels of a span stand together, two spans that share words do not.
    pair = [{"start": 0, "end": 2, "type": kind, "score": score} for kind, score in (("DNA", 0.7), ("protein", 0.9))]
    assert resolve_overlaps([*pair, {"start": 1, "end": 3, "type": "DNA", "score": 0.8}], "flat") == pair[::-1]
    assert resolve_overlaps(pair, lambda entities: entities[1:]) == pair[1:]  # a policy may be a function
    assert found(None, "flat") == [(2, 3, "protein")]
    assert found({"protein": 0.5, "DNA": 0.9}, "nested") == [(0, 3, "protein"), (2, 3, "protein")]
    assert found(0.0, "nested")[:2] == [(0, 3, "DNA"), (0, 3, "protein")]


def test_the_likeliest_of_several_labels_is_found_where_it_is_likelier_than_none_of_them():
    """As with one label per span: labels that exclude each other share a probability that is high together."""
    output = candidate_output()
    output.logits = torch.tensor([[[0.4, 0.45], [0.1, 0.45], [0.49, 0.6]]]).logit()  # none of them: 0.33, 0.5, 0.2
    output.candidates, output.candidate_mask = output.candidates[:1], output.candidate_mask[:1]
    assert spans(decode(output, multi_label=True)[0]) == [(0, 3, "protein"), (2, 3, "protein")]
    assert spans(decode(output, {"protein": 0.5}, multi_label=True)[0]) == [(2, 3, "protein")]


entities = st.lists(
    st.builds(
        lambda start, width, score: {"start": start, "end": start + width, "type": "DNA", "score": score},
        st.integers(0, 12),
        st.integers(1, 6),
        st.sampled_from([0.2, 0.5, 0.8]),  # equal ones are frequent
    ),
    max_size=12,
    unique_by=lambda entity: (entity["start"], entity["end"]),
)


def overlapping(one, other):
    return one["start"] < other["end"] and other["start"] < one["end"]


def crossing(one, other):
    return overlapping(one, other) and (one["start"] - other["start"]) * (one["end"] - other["end"]) > 0


IN_CONFLICT = {"all": lambda *_: False, "nested": crossing, "flat": overlapping}


@given(entities)
def test_overlap_policies_are_their_definition(found):
    assert OVERLAPS.keys() == IN_CONFLICT.keys(), "say in IN_CONFLICT of which two entities a policy keeps one only"
    for overlap in OVERLAPS:
        kept = []
        for entity in sorted(found, key=lambda e: (-e["score"], e["start"] - e["end"], e["start"])):
            if not any(IN_CONFLICT[overlap](entity, other) for other in kept):
                kept.append(entity)
        assert resolve_overlaps(found, overlap) == sorted(kept, key=lambda e: (e["start"], -e["end"]))


def test_windows_are_one_text_whose_policy_counts_words():
    """Of two entities as likely, the one of more words is kept, not the one of more characters."""
    text = "a b c incomprehensibilities"
    words = [(0, 1), (2, 3), (4, 5), (6, 27)]
    found = FoundInText()
    found.add(Piece(words[:3], 0, 1), [{"start": n, "end": 3, "type": "DNA", "score": 0.5} for n in (0, 2)])
    found.add(Piece(words[2:], 1, 0), [{"start": 0, "end": 2, "type": "protein", "score": 0.5}])
    assert found.words == words
    assert [(e["start"], e["end"], e["type"]) for e in found.entities][::2] == [(0, 3, "DNA"), (2, 4, "protein")]
    assert [one["word"] for one in found.in_characters(text)][:2] == ["a b c", "c incomprehensibilities"]
    assert found.in_characters(text, "nested") == [
        {"entity_group": "DNA", "score": 0.5, "word": "a b c", "start": 0, "end": 5},
        {"entity_group": "DNA", "score": 0.5, "word": "c", "start": 4, "end": 5},
    ]
    assert [one["word"] for one in found.in_characters(text, "flat", ["protein"])] == ["c incomprehensibilities"]
