"""Nesting of spans, compared with the definitions."""

from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.nesting import nested_spans, nesting_depths, nesting_heights

SPAN = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda span: (span[0], span[0] + span[1]))
SPANS = st.lists(SPAN, max_size=9)


@given(SPANS)
def test_nested_means_deep_or_containing(spans):
    depths, heights, nested = nesting_depths(spans), nesting_heights(spans), nested_spans(spans)
    among_half = nesting_depths(spans[::2], spans)
    assert set(depths) == set(among_half) == set(heights) == set(spans)
    for span in spans:
        outer = [o for o in spans if o != span and o[0] <= span[0] and span[1] <= o[1]]
        inner = [i for i in spans if i != span and span[0] <= i[0] and i[1] <= span[1]]
        assert among_half[span] == 1 + max((among_half[o] for o in outer if o in spans[::2]), default=0)
        assert (span in nested) == bool(outer or inner)
        assert depths[span] == 1 + max((depths[o] for o in outer), default=0)
        assert heights[span] == 1 + max((heights[i] for i in inner), default=0)
