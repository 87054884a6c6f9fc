"""Text ↔ words: aligning entities, joining words, detokenizing.

Corpora tokenize in their own way (GENIA at the boundaries of its entities), raw text is split by a splitter that does
not know the entities. A model for raw text is trained on the splitter's words; entities that they cannot express are
counted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from ..model.text_triaffine import INVISIBLE_SPACES, Offsets, check_words
from .schema import Entity

WordSplitter = Callable[[str], Sequence[tuple[int, int]]]
"""Text → its words as (start, end) in characters, end exclusive, in order and without overlaps.

Examples:
    >>> from modeling_triaffine.data import WordSplitter
    >>> def by_characters(text: str) -> list[tuple[int, int]]:
    ...     return [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]
    >>> splitter: WordSplitter = by_characters
    >>> splitter("a b")
    [(0, 1), (2, 3)]
"""

LOST_IN_A_WORD = "entities with a boundary inside a word dropped"
LOST_ACROSS_SENTENCES = "entities across sentences dropped"

CONTRACTIONS = ("'s", "'t", "n't", "'re", "'ve", "'ll", "'d", "'m")
NO_SPACE_BEFORE = frozenset([*",.;:?!%)]}”’", *CONTRACTIONS, *(end.replace("'", "’") for end in CONTRACTIONS)])
NO_SPACE_AFTER = frozenset("([{“‘$")


def split_words(text: str, word_splitter: WordSplitter) -> list[tuple[int, int]]:
    """Applies a splitter and checks its words; a text of white space, visible or not, has none."""
    words = check_words(word_splitter(text), text, "word splitter")
    if text.translate(INVISIBLE_SPACES).strip() and not words:
        raise ValueError(f"The word splitter returned no word for the text {text[:60]!r}; it must return at least one.")
    return words


def align_entities(
    text: str, entities_by_characters: Iterable[Entity], word_spans: Sequence[tuple[int, int]]
) -> tuple[list[Entity], list[Entity]]:
    """Aligns entities with words: returns (entities by words, entities that cannot be aligned).

    An entity covers the words inside it; white space at its boundaries is ignored. It is lost if one of its boundaries
    falls inside a word, or if it covers no word.

    Args:
        text: the text whose characters are counted.
        entities_by_characters: `start`, `end` (exclusive) in characters.
        word_spans: (start, end) of each word in characters, in order.

    Raises:
        ValueError: an entity is outside of the text.

    Examples:
        >>> from modeling_triaffine.data import align_entities
        >>> align_entities("CD28-mediated", [{"start": 0, "end": 4, "type": "protein"}], [(0, 4), (4, 5), (5, 13)])
        ([{'start': 0, 'end': 1, 'type': 'protein'}], [])
        >>> align_entities("CD28-mediated", [{"start": 0, "end": 4, "type": "protein"}], [(0, 13)])
        ([], [{'start': 0, 'end': 4, 'type': 'protein'}])
    """
    starts, ends = [start for start, _ in word_spans], [end for _, end in word_spans]
    aligned: list[Entity] = []
    lost: list[Entity] = []
    for entity in entities_by_characters:
        start, end = entity["start"], entity["end"]
        if not 0 <= start < end <= len(text):
            raise ValueError(f"Entity {dict(entity)} is outside its text of {len(text)} characters.")
        first, stop = bisect_right(ends, start), bisect_left(starts, end)  # the words that overlap the entity
        if first < stop and start <= starts[first] and ends[stop - 1] <= end:
            aligned.append(Entity(start=first, end=stop, type=entity["type"]))
        else:
            lost.append(entity)
    return aligned, lost


def by_sentence(entities: Iterable[Entity], sizes: Sequence[int]) -> tuple[list[list[Entity]], list[Entity]]:
    """Divides a document's entities among its sentences, by their own words, and finds those that cross an end.

    `sizes` are the numbers of words in the sentences.
    """
    first_words = list(accumulate(sizes, initial=0))
    inside: list[list[Entity]] = [[] for _ in sizes]
    crossing: list[Entity] = []
    for entity in entities:
        sentence = bisect_right(first_words, entity["start"]) - 1
        if entity["end"] > first_words[sentence + 1]:
            crossing.append(entity)
        else:
            start, end = (entity[side] - first_words[sentence] for side in ("start", "end"))
            inside[sentence].append(Entity(start=start, end=end, type=entity["type"]))
    return inside, crossing


def joined_tokens(tokens: Sequence[str]) -> tuple[str, list[Offsets]]:
    """The tokens joined by single spaces, and the characters of each."""
    starts = accumulate((len(token) + 1 for token in tokens), initial=0)
    return " ".join(tokens), [(start, start + len(token)) for start, token in zip(starts, tokens, strict=False)]


def join_tokens(tokens: Sequence[str], entities: Iterable[Entity]) -> tuple[str, list[Entity]]:
    """The tokens joined by single spaces, and the entities by characters of that text."""
    text, words = joined_tokens(tokens)
    return text, [Entity(start=words[e["start"]][0], end=words[e["end"] - 1][1], type=e["type"]) for e in entities]


def detokenize(tokens: Sequence[str]) -> str:
    """The tokens as running text with English spacing: none before closing marks, none after opening ones."""
    text = ""
    for before, token in zip(("", *tokens), tokens, strict=False):
        is_joined = not before or token in NO_SPACE_BEFORE or before in NO_SPACE_AFTER
        text += token if is_joined else f" {token}"
    return text
