"""Raw text → sentences → words, as character offsets into the text. No tensors, no vocabulary.

Offsets are (start, end) with an exclusive end, in characters of the Python string, so `text[start:end]` is the word.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from tokenizers import Regex, Tokenizer, pre_tokenizers

DEFAULT_WORD_SPLITTER = "punctuation"

Offsets = tuple[int, int]
# Text → its words. (Or its sentences, one after the other: there may be many.)
Splitter = Callable[[str], list[Offsets]]
SentenceSplitter = Callable[[str], Iterator[Offsets]]
# Text → the words of each of its sentences: a library's in place of these two.
TextSplitter = Callable[[str], Iterable[Sequence[Offsets]]]

# What stands alone as a word: punctuation and symbols (hyphens and slashes among them, for entities end at these), and
# the letters of scripts that are written without spaces between words.
_ALONE = r"[\p{P}\p{S}]|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_PRE_TOKENIZERS: dict[str, pre_tokenizers.PreTokenizer] = {
    "punctuation": pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(_ALONE), "isolated")]
    ),
    "whitespace": pre_tokenizers.WhitespaceSplit(),
}
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s")
# A sentence is cut into words in stretches of about so many characters, so that memory does not grow with its length.
_CHARACTERS_AT_ONCE = 65536

# A sentence ends at a mark, with any closing quotes or brackets, before white space (East Asian marks: anywhere), or at
# an empty line.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|\n[ \t\r]*\n")
_SENTENCE_START = re.compile(r"\s*[\"'“‘«(\[]*([^\W_])")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*$")
_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905 - eighty quoted words would fill a page
        "adj al approx art bros ca capt cf ch co col corp dept dr ed eds eq eqs esp est etc fig figs gen gov hon inc"
        " jan feb mar apr jun jul aug sep sept oct nov dec jr lt ltd maj max messrs min mr mrs ms mt no nos op p par"
        " pp prof ref refs rep resp rev sec sect sen sgt sp spp sr st tab vol vols viz vs"
    ).split()
)


def clean_text(text: str) -> str:
    """Lone surrogates, which no tokenizer can read, become U+FFFD; every offset stays where it was."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def word_splitter(choice: str | dict[str, Any]) -> Splitter:
    """The splitter a processor's option names.

    choice: "punctuation" (white space, punctuation, symbols), "whitespace", or the JSON form of any pre-tokenizer of
    the `tokenizers` library (`json.loads(pre_tokenizer.__getstate__())`).
    """
    if isinstance(choice, dict):
        pre_tokenizer = _from_json(choice)
    elif isinstance(choice, str) and choice in _PRE_TOKENIZERS:
        pre_tokenizer = _PRE_TOKENIZERS[choice]
    else:
        raise ValueError(
            f'`word_splitter` is {choice!r}; give "punctuation", "whitespace", or the JSON form of a pre-tokenizer of '
            "the `tokenizers` library as a dict."
        )

    def split(text: str) -> list[Offsets]:
        return [offsets for _, offsets in pre_tokenizer.pre_tokenize_str(clean_text(text)) if offsets[0] < offsets[1]]

    return split


def _from_json(state: dict[str, Any]) -> pre_tokenizers.PreTokenizer:
    model = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    try:
        return Tokenizer.from_str(json.dumps({"version": "1.0", "pre_tokenizer": state, "model": model})).pre_tokenizer
    except Exception as error:  # the library raises bare Exception for a form it does not know
        raise ValueError(f"`word_splitter`: the `tokenizers` library cannot read {state}: {error}") from error


def sentence_splitter(choice: str) -> SentenceSplitter:
    """The splitter a processor's option names: "punctuation", "lines" (a sentence a line) or "none" (one sentence)."""
    if choice not in SENTENCE_SPLITTERS:
        names = ", ".join(map(repr, SENTENCE_SPLITTERS))
        raise ValueError(f"`sentence_splitter` is {choice!r}; choose one of {names}.")
    return SENTENCE_SPLITTERS[choice]


def split_at_punctuation(text: str) -> Iterator[Offsets]:
    """Sentences end at . ! ? … before a capital letter, a digit or a quote, at East Asian full stops and empty lines.

    A full stop after an abbreviation or an initial, or before a small letter, ends none.
    """
    return _trimmed(text, (match.end() for match in _SENTENCE_END.finditer(text) if _ends_sentence(text, match)))


def split_at_lines(text: str) -> Iterator[Offsets]:
    """Every line that is not blank is a sentence."""
    return _trimmed(text, (match.end() for match in re.finditer(r"\n", text)))


def whole_text(text: str) -> Iterator[Offsets]:
    """The text is one sentence."""
    return _trimmed(text, [])


SENTENCE_SPLITTERS: dict[str, SentenceSplitter] = {
    "punctuation": split_at_punctuation,
    "lines": split_at_lines,
    "none": whole_text,
}


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark = match.group()[0]
    if mark == "\n" or mark in "。！？":
        return True
    start = _SENTENCE_START.match(text, match.end())
    if start is None or start.group(1).islower():
        return False
    if mark != "." or match.group().startswith(".."):
        return True
    # The word before the full stop decides; looking at its last characters is enough.
    before = _LAST_WORD.search(text, max(0, match.start() - 20), match.start())
    word = before.group() if before else ""
    return not (_INITIAL.fullmatch(word) or word.lower() in _ABBREVIATIONS)


def _trimmed(text: str, cuts: Iterable[int]) -> Iterator[Offsets]:
    """Pieces between the cuts without the white space around them; blank ones are left out."""
    for start, end in pairwise(chain([0], cuts, [len(text)])):
        piece = text[start:end]
        left = len(piece) - len(piece.lstrip())
        if left < len(piece):
            yield start + left, start + len(piece.rstrip())


class Piece(NamedTuple):
    """Words that are scored together: a sentence, or a window of one that is too long.

    offsets: of the words in the text.
    shared_before, shared_after: how many of its first words the window before holds, too, and of its last the next.
    """

    offsets: list[Offsets]
    shared_before: int = 0
    shared_after: int = 0

    def owns(self, start: int, end: int) -> bool:
        """Whether an entity of these words (`end` exclusive) counts here, and not in a neighbouring window.

        An entity in what two windows share counts in the one on whose side of the shared words' middle its own lies.
        """
        in_shared_words = end <= self.shared_before and start + end <= self.shared_before
        first_shared = len(self.offsets) - self.shared_after
        in_next = start >= first_shared and start + end > first_shared + len(self.offsets)
        return not in_shared_words and not in_next


def split_text(
    text: str, sentences: SentenceSplitter, words: Splitter, max_sentence_words: int, shared: int = 0
) -> Iterator[Piece]:
    """The words of each sentence; one beyond `max_sentence_words` is cut into windows that share `shared` words."""
    of_words = (_words_between(text, start, end, words) for start, end in sentences(text))
    return in_windows(of_words, max_sentence_words, shared)


def sentences_by(splitter: TextSplitter, text: str) -> Iterator[Sequence[Offsets]]:
    """The words of each sentence of a text as a splitter has them.

    Raises:
        ValueError: words are not in order, overlap, or lie outside of the text.
    """
    last = 0
    for number, words in enumerate(splitter(clean_text(text))):
        for start, end in words:
            if not last <= start < end <= len(text):
                raise ValueError(
                    f"The text splitter has a word from {start} to {end} in sentence {number}, after one that ends at "
                    f"{last}, of a text of {len(text)} characters. Words come in order, without overlap and not empty."
                )
            last = end
        yield words


def in_windows(sentences: Iterable[Iterable[Offsets]], max_sentence_words: int, shared: int = 0) -> Iterator[Piece]:
    """Sentences; one beyond `max_sentence_words` is cut into windows that share `shared` words."""
    for words in sentences:
        yield from _windows(iter(words), max_sentence_words, shared)


def _windows(words: Iterator[Offsets], size: int, shared: int) -> Iterator[Piece]:
    window = list(islice(words, size))
    shared_before = 0
    while window:
        following = list(islice(words, size - shared))
        shared_after = shared if following else 0
        yield Piece(window, shared_before, shared_after)
        window = [*window[size - shared :], *following] if following else []
        shared_before = shared_after


def _words_between(text: str, start: int, end: int, words: Splitter) -> Iterator[Offsets]:
    while start < end:
        stop = end
        if end - start > _CHARACTERS_AT_ONCE:  # a stretch ends at white space, where no word does
            space = _SPACE.search(text, start + _CHARACTERS_AT_ONCE, end)
            stop = space.end() if space else end
        yield from ((start + first, start + last) for first, last in words(text[start:stop]))
        start = stop


def neighbouring_words(
    sentences: Sequence[list[str]], context: str, max_words: int, inside: slice | None = None
) -> tuple[list[list[str]], list[list[str]]]:
    """Words on the left and on the right of each sentence of a document.

    context: "none", "previous_sentence" (that sentence on the left, nothing on the right: GENIA as published) or
    "document" (both sides, growing to `max_words` words each). `inside` limits for which sentences, not which are seen.
    """
    positions = range(*(inside or slice(None)).indices(len(sentences)))
    nothing: list[list[str]] = [[] for _ in positions]
    if context == "none":
        return nothing, nothing
    if context == "previous_sentence":
        return [list(sentences[n - 1][-max_words:]) if n and max_words else [] for n in positions], nothing
    left, right = [], []
    for position in positions:
        before: list[str] = []
        neighbour = position - 1
        while neighbour >= 0 and len(before) < max_words:
            before = [*sentences[neighbour], *before]
            neighbour -= 1
        after: list[str] = []
        neighbour = position + 1
        while neighbour < len(sentences) and len(after) < max_words:
            after += sentences[neighbour]
            neighbour += 1
        left.append(before[len(before) - min(max_words, len(before)) :])
        right.append(after[:max_words])
    return left, right
