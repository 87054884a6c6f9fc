"""Raw text → sentences → words, as character offsets into the text.

Offsets are (start, end) with an exclusive end, in characters of the Python string, so `text[start:end]` is the word.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, islice, pairwise
from operator import index
from typing import Any, NamedTuple

from tokenizers import Regex, pre_tokenizers

from .options_triaffine import PROCESSOR_OPTIONS

Offsets = tuple[int, int]  # (start, end) in characters, end exclusive
Splitter = Callable[[str], list[Offsets]]  # text → its words
SentenceSplitter = Callable[[str], Iterator[Offsets]]  # text → its sentences
TextSplitter = Callable[[str], Iterable[Sequence[Offsets]]]  # text → the words of each sentence, by another library

# Rules, leaders and encoded data are one word each, because time grows with the number of words: more than
# `LONGEST_RUN` of a mark in a row, and more than `LONGEST_STRING` characters without white space and without letters of
# scripts that are written without spaces, or of Tibetan, whose words end at marks.
LONGEST_RUN, LONGEST_STRING = 8, 512


def _word_patterns(
    space: str, mark: str, digit: str, character: str, unspaced: str = "", hangul: str = "", tibetan: str = ""
) -> dict[str, str]:
    """The pattern of a word for each choice of a word splitter, from kinds of characters as they stand in brackets.

    Marks are words of their own: punctuation and symbols, also hyphens and slashes, at which entities end; numbers in
    circles, of lists; raised digits, of footnotes. So are letters of scripts without spaces between words.
    """
    run = rf"([{mark}])\1{{{LONGEST_RUN},}}"

    def pattern(letters: str, *words: str) -> str:
        string = f"[^{space}{letters}{tibetan}]{{{LONGEST_STRING + 1},}}"
        return "|".join((string, run, *words))

    single, syllables = mark + unspaced, mark + unspaced + hangul
    return {
        "punctuation": pattern(unspaced, f"[{single}]", f"[^{space}{single}]+"),
        "letters_and_digits": pattern(unspaced, f"[{single}]", f"[{digit}]+", f"[^{space}{single}{digit}]+"),
        "syllables": pattern(unspaced + hangul, f"[{syllables}]", f"[^{space}{syllables}]+"),
        "characters": pattern(unspaced, f"(?![{space}]){character}"),
        "whitespace": f"[^{space}]+",
    }


_WORDS = _word_patterns(
    space=r"\s",
    mark=r"\p{P}\p{S}①-⒛⓪-⓿❶-➓²³¹⁰⁴-⁹",
    digit=r"\p{N}",
    character=r"\X",
    unspaced=r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}",
    hangul=r"\p{Hangul}",
    tibetan=r"\p{Tibetan}",
)
# The same in ASCII, by Python's own library, which takes a quarter of the time.
_ASCII_WORDS = _word_patterns(space=r"\t-\r ", mark=r"!-/:-@\[-`{-~", digit="0-9", character=".")

# Zero-width spaces and byte order marks, frequent in web pages, and the direction marks around names in right-to-left
# text → spaces; offsets stay. (Joiners, U+200C and U+200D, are parts of words.)
_DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE_SPACES = str.maketrans(dict.fromkeys(f"\u200b\ufeff{_DIRECTION_MARKS}", " "))
_SURROGATES = re.compile("[\ud800-\udfff]")

# Some marks close a quotation in one language and open it in another (“so”, „so“, »so«). The last ones are invisible,
# such as the direction marks of right-to-left text.
_QUOTES = "\"'“”‘’„‚«»‹›\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
# A sentence ends at a mark with closing quotes (« in French after a space ») or brackets before white space (East Asian
# marks: anywhere), at an empty line, at a tab, as in tables, and before and after the mark of a list's item.
_ITEM = r"(?m:^)[^\S\n]*(?:[-–—*•·▪◦‣●#]+|\(?\d{1,3}\))(?=\s)"
_MARKS = ".!?…؟۔।॥።။។։"
_SENTENCE_END = re.compile(
    rf"(?<![{_MARKS}])[{_MARKS}]+(?:[{_QUOTES})\]}}]|[ \u00a0\u202f]»)*(?=\s)|[。！？]+[」』”’）)\]》】]*"
    rf"|\n[^\S\n]*\n|\n(?={_ITEM})|(?<=\S) ?\t|{_ITEM}"
)
# Three or more successive lines of at most 40 characters are a list, an address or a form; wrapped lines are longer.
_LINE_START = re.compile("^", re.MULTILINE)
_SHORT_LINES = re.compile(r"(?m:^)(?:[^\S\n]*\S[^\n]{0,39}(?:\n|\Z)){3,}")
_SENTENCE_START = re.compile(rf"[\s{_QUOTES}(\[{{¿¡—–•*#@>-]*+([^\W_])")
# The word before a full stop, without the quotes that open it.
_LAST_WORD = re.compile(rf"(?:(?<![^\s(\[{{—])[{_QUOTES}]+)?([^\s(\[{{—]*)$")
_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
# Of English, German, French, Spanish, Russian; but none that is also a word that ends sentences ("gem.", "me.").
_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905 - quoted words would fill a page
        "adj al approx art bros ca capt cf ch co col corp dept dr ed eds eq eqs esp est etc fig figs ft gen gov hon inc"
        " jan feb mar apr jun jul aug sep sept oct nov dec jr lt ltd maj max messrs min mr mrs ms mt no nos op p par"
        " pp prof ref refs rep resp rev sec sect sen sgt sp spp sr st tab univ vol vols viz vs"
        " abs abt anl anm aufl az bd bde beschl bgbl bl bspw buchst bzgl bzw dez dipl ebd einschl evtl ff fr geb ggf"
        " hrsg inkl insb insbes jur kap lfd med mio mrd nat nr nrn okt rd rdnr rer rn rz sog tsd tz urt usw vgl wg ziff"
        " zit zzgl"
        " av boul cass chap civ crim déc éd févr janv juill mlle mme mmes préc ste sté"
        " avd avda ctra dra sra"
        " акад гл доц пл проф ст табл ул"
    ).split()
)
# German ordinals: 3. März, and after an article, die 15. Kammer.
_ORDINAL = re.compile(r"(?:(?<!\w)(d(?:e[mnrs]|as|ie)|im|vom|zum)\s+)?(?<!\w)\d{1,2}$", re.IGNORECASE)
_GERMAN_MONTH = re.compile(
    r"\s+(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)


def clean_text(text: str) -> str:
    """Replaces lone surrogates, which no tokenizer can read, by U+FFFD; offsets do not change."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def composed(text: str) -> str:
    """The text in Unicode's normal form C, as models are trained; macOS and some tools write accents apart (NFD)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _of_composed(splitter: Splitter, text: str) -> list[Offsets]:
    """The words of the composed text, as offsets of the text as written."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return splitter(text)
    starts = [place for place, character in enumerate(text) if not place or not _is_combining(character)]
    pieces: list[str] = []
    places: list[int] = []  # of each character of the composed text
    # Not all of a long run of marks at once, which takes quadratic time.
    starts = [cut for start, end in pairwise([*starts, len(text)]) for cut in range(start, end, LONGEST_STRING)]
    for start, end in pairwise([*starts, len(text)]):
        pieces.append(composed(text[start:end]))
        places += (min(start + place, end) for place in range(len(pieces[-1])))
    places.append(len(text))
    words = ((places[start], places[end]) for start, end in splitter("".join(pieces)))
    return [(start, end) for start, end in words if start < end]


def _is_combining(character: str) -> bool:
    """True if a character may be composed with the one before: accents, signs, vowels and finals of Hangul."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


def word_splitter(choice: str) -> Splitter:
    """The word splitter that a processor's option selects, as declared in [`ProcessorOptions`].

    All but "whitespace" keep a mark repeated more than `LONGEST_RUN` times, and a string of more than `LONGEST_STRING`
    characters without spaces, as one word.
    """
    PROCESSOR_OPTIONS["word_splitter"].check(choice)
    return _word_splitter(choice)


@cache
def _word_splitter(choice: str) -> Splitter:
    of_ascii = re.compile(_ASCII_WORDS[choice])
    isolate = pre_tokenizers.Split(Regex(_WORDS[choice]), "isolated")
    of_any = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), isolate])

    def split(text: str) -> list[Offsets]:
        if text.isascii():
            return [match.span() for match in of_ascii.finditer(text)]
        clean = clean_text(text) if choice == "whitespace" else clean_text(text).translate(INVISIBLE_SPACES)
        return [offsets for _, offsets in of_any.pre_tokenize_str(clean) if offsets[0] < offsets[1]]

    return partial(_of_composed, split)


def split_at_punctuation(text: str) -> Iterator[Offsets]:
    """Ends sentences at . ! ? … and their like in other scripts, before white space, and at East Asian marks (。！？).

    They also end at blank lines, items of lists, tabs and short lines. No mark or line does before a lowercase letter
    or a symbol that does not begin a sentence, such as $, and no full stop after an abbreviation or an initial.
    """
    ends = {match.end() for match in _SENTENCE_END.finditer(text) if _ends_sentence(text, match)}
    return _trimmed(text, sorted(ends.union(_starts_of_short_lines(text))))


def _starts_of_short_lines(text: str) -> Iterator[int]:
    """Where lines that match `_SHORT_LINES` begin, and the line after them."""
    for lines in _SHORT_LINES.finditer(text):
        for line in _LINE_START.finditer(text, *lines.span()):
            # Of lines of marks alone, not each reads all that follow.
            start = _SENTENCE_START.match(text, line.start(), line.start() + LONGEST_STRING)
            if start is not None and not start.group(1).islower():
                yield line.start()


SENTENCE_SPLITTERS: dict[str, SentenceSplitter] = {
    "punctuation": split_at_punctuation,
    "lines": lambda text: _trimmed(text, (match.end() for match in re.finditer(r"\n", text))),
    "none": lambda text: _trimmed(text, ()),
}


def sentence_splitter(choice: str) -> SentenceSplitter:
    """The sentence splitter that a processor's option selects: "punctuation", "lines" or "none" (one sentence)."""
    PROCESSOR_OPTIONS["sentence_splitter"].check(choice)
    return SENTENCE_SPLITTERS[choice]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """True if a match of `_SENTENCE_END` ends a sentence by the rules of [`split_at_punctuation`]."""
    mark = match.group()[0]
    if mark not in _MARKS:
        return True
    start = _SENTENCE_START.match(text, match.end())
    if start is None or start.group(1).islower():
        return False
    if mark != "." or match.group().startswith(".."):
        return True
    # The words around the full stop decide; these many characters are enough.
    before = unicodedata.normalize("NFC", text[max(0, match.start() - 20) : match.start()])
    after = unicodedata.normalize("NFC", text[match.end() : match.end() + 20])
    ordinal = _ORDINAL.search(before)
    if ordinal is not None:
        return not (ordinal[1] or _GERMAN_MONTH.match(after))
    last = _LAST_WORD.search(before)
    word = last[1] if last else ""
    elided = word.replace("’", "'").rpartition("'")[2].lower()  # art of l'art; but no initial is the t of don't
    return not (_INITIAL.fullmatch(word) or elided in _ABBREVIATIONS or elided.endswith("str"))  # Hauptstr. 5


def _trimmed(text: str, cuts: Iterable[int]) -> Iterator[Offsets]:
    """The non-blank pieces between the cuts, without white space around them."""
    for start, end in pairwise(chain([0], cuts, [len(text)])):
        piece = text[start:end]
        left = len(piece) - len(piece.lstrip())
        if left < len(piece):
            yield start + left, start + len(piece.rstrip())


class Piece(NamedTuple):
    """Words that are scored together: a sentence, or a window of a longer one."""

    offsets: Sequence[Offsets]  # of the words in the text
    shared_before: int = 0  # number of first words shared with the previous window
    shared_after: int = 0  # of last words, with the next
    words: Sequence[str] = ()
    left: Sequence[str] = ()  # context that the model reads before the words
    right: Sequence[str] = ()  # and after them
    pos: Sequence[str] = ()  # parts of speech of the words, if they are given

    def owns(self, start: int, end: int) -> bool:
        """True if an entity in these words (`end` exclusive) belongs to them, not to a neighboring window.

        One within the words that two windows share belongs to the window on its side of the middle of these words.
        """
        size = len(self.offsets)
        in_last = end <= self.shared_before and start + end <= self.shared_before
        first_shared = size - self.shared_after
        in_next = start >= first_shared and start + end > first_shared + size
        return not in_last and not in_next


def split_text(text: str, sentences: Iterable[Offsets], words: Splitter) -> Iterator[list[Offsets]]:
    """The words of each sentence of a text."""
    for start, end in sentences:
        found = words(text[start:end])
        yield [(start + first, start + last) for first, last in found] if start else found


def sentences_by(splitter: TextSplitter, text: str) -> Iterator[Sequence[Offsets]]:
    """The words of each sentence of a text, by a person's splitter, checked by [`check_words`]."""
    last = 0
    for number, words in enumerate(splitter(clean_text(text))):
        checked = check_words(words, text, f"text splitter, in sentence {number},", last)
        last = checked[-1][1] if checked else last
        yield checked


def check_words(words: Iterable[Any], text: str, splitter: str, last: int = 0) -> list[Offsets]:
    """The words that a `splitter` returned, after one that ends at `last`; ValueError unless they follow each other."""
    checked = []
    for word in words:
        try:
            start, end = map(index, word)
        except (TypeError, ValueError):
            start = end = -1
        if not last <= start < end <= len(text):
            where = f"after a word that ends at {last}, in the text {text!r:.80} of {len(text)} characters"
            remedy = "Give each word as (start, end) in characters, in order and without overlap"
            raise ValueError(f"The {splitter} returned {word!r:.80} {where}. {remedy}.")
        checked.append((start, end))
        last = end
    return checked


def neighbouring_words(
    sentences: Sequence[Sequence[str]], position: int, context: str, max_words: int
) -> tuple[list[str], list[str]]:
    """The context of a sentence of a document: the words on its left, and those on its right.

    context: "none", "previous_sentence" (on the left only: GENIA as published) or "document" (on both sides, up to
    `max_words` words each).
    """
    if context == "none":
        return [], []
    if context == "previous_sentence":
        return list(sentences[position - 1][-max_words:]) if position and max_words else [], []
    before = chain.from_iterable(reversed(sentences[n]) for n in range(position - 1, -1, -1))
    after = chain.from_iterable(sentences[n] for n in range(position + 1, len(sentences)))
    return [*islice(before, max_words)][::-1], [*islice(after, max_words)]
