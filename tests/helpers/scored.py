"""Entities and sentences for the tests of scores."""

from hypothesis import strategies as st


def entities(*triples):
    return [{"start": start, "end": end, "type": label} for start, end, label in triples]


# Overlapping, nested and repeated entities of one sentence.
sentences = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from(["LOC", "ORG", "PER"])).map(
        lambda entity: {"start": entity[0], "end": entity[0] + entity[1], "type": entity[2]}
    ),
    max_size=7,
)
# Predictions and references with one list per sentence.
pairs = st.lists(st.tuples(sentences, sentences), max_size=5).map(
    lambda rows: tuple(zip(*rows, strict=True)) or ((), ())
)
