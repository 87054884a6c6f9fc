"""TriaffineProcessor: text or words → features of sentences → batches of tensors. The collator adds labels.

`text_triaffine.py` splits raw text into sentences and words, `batches_triaffine.py` lays out sub-words with context or
in windows, and pads features, dicts of arrays, to batches.
"""

import copy
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor
from transformers import BatchFeature, ProcessorMixin
from transformers.utils import logging

from .batches_triaffine import INPUT_NAMES, Feature, Subwords, lay_out, pad_features, ranges
from .checks_triaffine import reading
from .options_triaffine import MODEL_OPTIONS, PROCESSOR_OPTIONS, ModelOptions, ProcessorOptions
from .repository_triaffine import AUTO_MAP, HubMixin, complete_import, find_file, refuse_redirections, save_remote_code
from .text_triaffine import (
    Offsets,
    Piece,
    Splitter,
    TextSplitter,
    clean_text,
    composed,
    neighbouring_words,
    sentence_splitter,
    sentences_by,
    split_text,
    word_splitter,
)

logger = logging.get_logger(__name__)

FILES = ("processor_config.json", "tokenizer.json", "tokenizer_config.json")  # transformers does not need the last
# Values of tokenizers' keywords that ask for what a processor does in any case.
PADDINGS, TRUNCATIONS = (True, "longest"), (True, False, None, "longest_first", "do_not_truncate")
VOCABULARIES_FILE = "vocabularies.json"
# Parts of the model's words beside sub-words, and how the configuration's fields on them begin.
VOCABULARY_PARTS = {"words": "word", "pos": "pos", "chars": "char"}
PADDING, UNKNOWN = "[PAD]", "[UNK]"

PosTagger = Callable[[list[Sequence[str]]], Iterable[Sequence[str]]]
# The character LSTM and the encoder read no more of a word: one of thousands of characters would widen the whole batch.
MAX_CHARACTERS = 64
MAX_CHARACTERS_OF_SUBWORDS = 256
LONGEST_WORD = 4 * MAX_CHARACTERS_OF_SUBWORDS  # no more is read and kept: composing all can take quadratic time
OPTIONS = {
    "max_subwords": replace(MODEL_OPTIONS["max_subwords"], least=8),
    "context": MODEL_OPTIONS["context"],
    **PROCESSOR_OPTIONS,
}
PIECES_AT_ONCE = 64  # sentences of a long text that are encoded together
MOST_KNOWN_WORDS = 2**17  # whose sub-words are kept (about 50 MB); a text of more distinct ones begins anew


class KnownWord(NamedTuple):
    """A word as the model reads it. Ids of sub-words and of characters are the bytes of arrays, which join fast."""

    subwords: bytes
    num_subwords: int
    characters: bytes
    num_characters: int
    word_id: int


class TriaffineProcessor(HubMixin, ProcessorMixin):
    """Makes the inputs of [`TriaffineForNestedNER`] from words or raw text.

    Args:
        tokenizer: fast tokenizer of the encoder.
        max_subwords: sub-words that the encoder reads at once, special tokens included. A longer sentence is laid out
            as windows of this width that overlap by half; a word is read from the window in which it is most central.
        context: sentences of raw text that the encoder reads beside each: "none", "previous_sentence" or "document".
        word_splitter, sentence_splitter: how raw text is split, as declared in [`ProcessorOptions`].
        max_sentence_words: longer sentences of raw text are scored in windows of a quarter as many words, which share
            a quarter of theirs with the next. An entity of at most these many words (16 by default) is complete in at
            least one window, and is found once.
        vocabulary_parts: those of "words", "pos", "chars" that the model reads beside sub-words; set by
            [`build_vocabularies`].

    Attributes:
        pos_tagger: function that tags sentences without parts of speech, if the model reads them: a list of sentences,
            each a list of words → the tags of each sentence. Not saved.
        text_splitter: function that splits raw text in place of `sentence_splitter` and `word_splitter`: a text → its
            sentences, each a list of the (start, end) of its words. Not saved.

    Examples:
        >>> from modeling_triaffine import TriaffineProcessor
        >>> processor = TriaffineProcessor.from_pretrained("outputs/demo/model")
        >>> batch = processor(["The mayor of Orsk slept. It rained."])
        >>> batch["num_words"]
        tensor([6, 3])
    """

    pos_tagger: PosTagger | None = None
    text_splitter: TextSplitter | None = None
    model_input_names: ClassVar[list[str]] = [*INPUT_NAMES]
    # A state of tokenizer and vocabularies, the words read in this state, and these tokenizer and vocabularies.
    _cache: tuple[list[tuple[int, int]], dict[str, KnownWord], tuple[Any, ...]] | None = None
    # Set by the package: what a new model needs is not remote code.
    from_encoder: ClassVar[Callable[..., Any]]
    build_vocabularies: ClassVar[Callable[..., None]]

    def __init__(
        self,
        tokenizer: Any,
        max_subwords: int = ModelOptions.max_subwords,
        context: str = ModelOptions.context,
        word_splitter: str = ProcessorOptions.word_splitter,
        sentence_splitter: str = ProcessorOptions.sentence_splitter,
        max_sentence_words: int = ProcessorOptions.max_sentence_words,
        vocabulary_parts: Sequence[str] = (),
    ):
        super().__init__(tokenizer)
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError("TriaffineProcessor needs a fast tokenizer: only these map sub-words to words.")
        check_parts("vocabulary_parts", vocabulary_parts)
        self.max_subwords = max_subwords
        self.context = context
        self.word_splitter = word_splitter
        self.sentence_splitter = sentence_splitter
        self.max_sentence_words = max_sentence_words
        for name, option in OPTIONS.items():
            option.check(getattr(self, name), "TriaffineProcessor: ")
        self.vocabulary_parts = list(vocabulary_parts)
        self.vocabularies: dict[str, dict[str, int]] = {}
        self._word_prefix = " " if _needs_space(tokenizer) else ""
        self._start_id = _first_id(tokenizer, "cls_token_id", "bos_token_id")
        self._separator_id = _first_id(tokenizer, "sep_token_id", "eos_token_id")
        self._unknown_id = _first_id(tokenizer, "unk_token_id", "pad_token_id", "eos_token_id")
        self._pad_id = _first_id(tokenizer, "pad_token_id", "eos_token_id")

    def __call__(
        self,
        text: str | Sequence[str] | None = None,
        words: Sequence[str] | Sequence[Sequence[str]] | None = None,
        pos: Sequence[Sequence[str]] | None = None,
        left_tokens: Sequence[Sequence[str]] | None = None,
        right_tokens: Sequence[Sequence[str]] | None = None,
        return_tensors: str = "pt",
        is_split_into_words: bool = False,
        padding: bool | str = True,
        truncation: bool | str | None = None,
    ) -> BatchFeature:
        """Returns a padded batch with a row for each sentence of the text or texts, or of the given words.

        Args:
            text: one or several texts; with `is_split_into_words`, as for tokenizers, the same as `words`.
            words: the words of a sentence, or of each of several.
            pos, left_tokens, right_tokens: the parts of speech of each sentence, and its context on both sides.
            return_tensors: "pt" or "np".
            padding, truncation: as for tokenizers, but only values that ask for the usual: a batch is padded to its
                longest sentence, and long sentences are windowed, never truncated.

        Raises:
            ValueError: neither or both of `text` and `words`, an argument of `words` with `text`, no sentence, or
                another padding or truncation.
        """
        if padding not in PADDINGS or truncation not in TRUNCATIONS:
            remedy = "leave both out: a batch is padded to its longest sentence, and long sentences are windowed"
            raise ValueError(f"`padding` is {padding!r} and `truncation` is {truncation!r}; {remedy}.")
        if is_split_into_words and words is None:
            text, words = None, text
        of_words = [part for part in (words, pos, left_tokens, right_tokens) if part is not None]
        if (text is None) == (words is None) or (text is not None and of_words):
            remedy = "give either `text` or `words`, and `pos`, `left_tokens`, `right_tokens` with `words` only"
            raise ValueError(f"TriaffineProcessor: {remedy}.")
        if text is not None:
            texts = text if isinstance(text, Iterable) and not isinstance(text, str | Mapping) else [text]
            features = self.encode_pieces([piece for string in texts for piece in self.read_text(string)])
        else:
            assert words is not None
            given: Any = words if isinstance(words, str) else list(words)
            sentences = [given] if given and isinstance(given[0], str) else given
            features = self.encode(sentences, pos, left_tokens, right_tokens)
        if not features:
            raise ValueError("TriaffineProcessor: the list contains no text or sentence.")
        return BatchFeature(self.pad(features), tensor_type=return_tensors)

    @property
    def split_words(self) -> Splitter:
        """The splitter of raw text into words that `word_splitter` names."""
        return word_splitter(self.word_splitter)

    def encode_text(self, text: str) -> Iterator[tuple[Feature, Piece]]:
        """Returns the feature of each sentence of a raw text, or window of a long one, and its piece of the text."""
        pieces = self.read_text(text)
        while some := [*islice(pieces, PIECES_AT_ONCE)]:
            yield from zip(self.encode_pieces(some), some, strict=True)

    def read_text(self, text: str) -> Iterator[Piece]:
        """Returns the pieces of a raw text: the words of each sentence, or window of a long one, and their context.

        A text without words is one empty sentence.
        """
        if not isinstance(text, str):
            found_type = type(text).__name__
            raise TypeError(f"TriaffineProcessor: a text is a string, not {found_type}; give lists of words as words=.")
        found: Iterable[Sequence[Offsets]]
        if self.text_splitter is not None:
            found = sentences_by(self.text_splitter, text)
        else:
            found = split_text(text, sentence_splitter(self.sentence_splitter)(text), self.split_words)
        sentences: Any = ((offsets, [text[start:end] for start, end in offsets]) for offsets in found if offsets)
        document: list[list[str]] = []
        if self.context != "none":
            sentences = [*sentences]
            document = [words for _, words in sentences]
        number = -1
        for number, (offsets, words) in enumerate(sentences):
            left, right = neighbouring_words(document, number, self.context, self.max_subwords)
            yield from self.windows(words, left, right, offsets)
        if number < 0:
            yield Piece([])

    def windows(
        self, words: Sequence[str], left: Sequence[str] = (), right: Sequence[str] = (), offsets: Any = None
    ) -> Iterator[Piece]:
        """Returns a sentence as the model reads it: whole, or if it is long, in windows that overlap.

        The time for a word grows with the length of what is scored together: windows as long as the longest sentence
        would take several times as long as prose. The context of a window is what stands around it: words of its
        sentence, then of `left` and `right`, which are the context of that. `offsets` are those of the words in their
        text; None: their numbers, (0, 1), (1, 2), …
        """
        offsets = [(number, number + 1) for number in range(len(words))] if offsets is None else offsets
        if len(words) <= self.max_sentence_words:
            yield Piece(offsets, 0, 0, words, left, right)
            return
        size = max(1, self.max_sentence_words // 4)
        shared, reach = size // 4, self.max_subwords
        for start in range(0, len(words) - shared, size - shared):
            end = start + size
            before, after = words[max(0, start - reach) : start], words[end : end + reach]
            if self.context == "document":
                sides = [*left, *before][-reach:], [*after, *right][:reach]
            else:
                nearest = before if self.context == "previous_sentence" else ()
                sides = list(nearest if start else left), list(() if after else right)
            shares = shared if start else 0, shared if after else 0
            yield Piece(offsets[start:end], *shares, words[start:end], *sides)

    def encode(
        self,
        words: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str] | None] | None = None,
        left_tokens: Sequence[Sequence[str] | None] | None = None,
        right_tokens: Sequence[Sequence[str] | None] | None = None,
    ) -> list[Feature]:
        """Encodes sentences of given words, with their parts of speech and context, if any, as features.

        A feature contains input_ids, attention_mask, token_type_ids, word_index [S], num_words, and, if the processor
        has these vocabularies, word_ids, pos_ids [N], char_ids [N, C]. A word without sub-words becomes the unknown
        token. Numbers of sentences or tags that differ are a ValueError; what is no list of strings is a TypeError.
        """
        # In the order of the fields of `Piece`.
        given: dict[str, Any] = {"words": words, "left_tokens": left_tokens, "right_tokens": right_tokens, "pos": pos}
        for name, sentences in given.items():
            sentences = [None] * len(words) if sentences is None else sentences
            if len(sentences) != len(words):
                raise ValueError(f"`{name}` is given for {len(sentences)} sentences, `words` for {len(words)}.")
            given[name] = [[] if part is None and name != "words" else part for part in sentences]
            for number, sentence in enumerate(given[name]):
                is_list = isinstance(sentence, Iterable) and not isinstance(sentence, str)
                if not is_list or not all(issubclass(kind, str) for kind in set(map(type, sentence))):
                    what = f"sentence {number} of `{name}` is {sentence!r:.80}"
                    raise TypeError(f"TriaffineProcessor: {what}; give it as a list of strings, one for each word.")
        return self.encode_pieces([Piece((), 0, 0, *parts) for parts in zip(*given.values(), strict=True)])

    def encode_pieces(self, pieces: Sequence[Piece]) -> list[Feature]:
        """Encodes pieces of texts as [`encode`] does sentences."""
        if not pieces:
            return []
        words = [piece.words for piece in pieces]
        width = self.max_subwords
        sides = [piece.left[-width:] for piece in pieces], [piece.right[:width] for piece in pieces]
        ids, counts, spelled, lengths, word_ids = self._look_up(words)
        context = None
        if any(map(any, sides)):
            before, after = (_subwords(side, *self._look_up(side)[:2]) for side in sides)
            context = before, after
        features = lay_out(_subwords(words, ids, counts), context, width, self._start_id, self._separator_id)
        parts: dict[str, np.ndarray] = {}
        if "words" in self.vocabulary_parts:
            parts["word_ids"] = np.array(word_ids, dtype=np.int64)
        if "pos" in self.vocabulary_parts:
            tags = fill_in_tags(words, [piece.pos for piece in pieces], self.pos_tagger)
            parts["pos_ids"] = _ids(chain.from_iterable(tags), self.vocabularies["pos"])
        has_characters = "chars" in self.vocabulary_parts
        if has_characters:
            is_character = np.arange(max([1, *lengths])) < np.array(lengths, dtype=np.int64)[:, None]
            parts["char_ids"] = np.zeros(is_character.shape, dtype=np.int64)
            parts["char_ids"][is_character] = np.frombuffer(b"".join(spelled), np.int64)
        first = 0
        for feature, sentence in zip(features, words, strict=True):
            last = first + len(sentence)
            feature["num_words"] = len(sentence)
            for name, values in parts.items():
                feature[name] = values[first:last]
            if has_characters:
                feature["char_ids"] = feature["char_ids"][:, : max(lengths[first:last], default=1)]
            first = last
        return features

    def pad(self, features: Sequence[Feature]) -> dict[str, Tensor]:
        """Makes a batch of the features, as [`pad_features`]."""
        return pad_features(features, self._pad_id)

    def _look_up(self, sentences: Sequence[Sequence[str]]) -> Sequence[Sequence[Any]]:
        """The fields of [`KnownWord`], each of all words of the sentences; words that were read before are known."""
        read_by = self.tokenizer, *self.vocabularies.values()
        state = [(id(part), len(part)) for part in read_by]
        if self._cache is None or self._cache[0] != state or len(self._cache[1]) > MOST_KNOWN_WORDS:
            self._cache = state, {}, read_by  # while it holds these, no other object can have the id of one
        known = self._cache[1]
        words = [word[:LONGEST_WORD] for word in chain.from_iterable(sentences)]
        if new := [word for word in {*words} if word not in known]:
            known.update(zip(new, self._read_words(new), strict=True))
        found = [known[word] for word in words]
        return [[*map(itemgetter(field), found)] for field in range(len(KnownWord._fields))]

    def _read_words(self, words: Sequence[str]) -> Iterator[KnownWord]:
        """The words as the model reads them. A tokenizer reads each by itself, so that the others do not matter."""
        encoded = self.tokenizer(
            [self._word_prefix + beginning(word) for word in words],
            is_split_into_words=True,
            add_special_tokens=False,
            split_special_tokens=True,  # the word "[SEP]" is not a separator
            verbose=False,
        )
        ids = np.array(encoded["input_ids"], dtype=np.int64)
        counts = np.bincount(np.array(encoded.word_ids(), dtype=np.int64), minlength=len(words))
        unknown = np.array([self._unknown_id])
        characters, by_name = self.vocabularies.get("chars", {}), self.vocabularies.get("words", {})
        for word, subwords in zip(words, np.split(ids, counts.cumsum()[:-1]), strict=True):
            # Letters in styles of print, which the tokenizer does not know (ﬁ, Ａ, 𝐀), are read as plain ones.
            if self._unknown_id in subwords and (plain := unicodedata.normalize("NFKC", beginning(word))) != word:
                yield from self._read_words([plain])
                continue
            subwords = subwords if len(subwords) else unknown  # a word without sub-words
            whole = composed(word)
            spelled = _ids(whole[:MAX_CHARACTERS], characters) if characters else subwords[:0]
            number = _ids([whole if whole in by_name else whole.lower()], by_name)[0] if by_name else 0
            yield KnownWord(subwords.tobytes(), len(subwords), spelled.tobytes(), len(spelled), int(number))

    def check_fits(self, config: Any) -> None:
        """Raises ValueError if the processor does not match the model of this configuration."""
        if self.max_subwords != config.max_subwords:
            remedy = f"build it with max_subwords={config.max_subwords}, as the model reads them"
            raise ValueError(f"The processor builds windows of {self.max_subwords} sub-words; {remedy}.")
        for part, prefix in VOCABULARY_PARTS.items():
            is_read, vectors = getattr(config, f"{prefix}_embedding_size"), getattr(config, f"{prefix}_vocab_size")
            if (is_read and part not in self.vocabulary_parts) or len(self.vocabularies.get(part, ())) > vectors:
                problem = "has no vocabulary of them, or too large a one; use the one saved with the model"
                raise ValueError(f"The model reads {part} in addition to sub-words, but the processor {problem}.")
        subwords = getattr(config.encoder_config, "vocab_size", None)
        highest = max(self.tokenizer.get_vocab().values(), default=0)
        if subwords is not None and highest >= subwords:
            remedy = f"use the tokenizer saved with the model, or call resize_token_embeddings({highest + 1})"
            raise ValueError(f"The tokenizer has ids up to {highest}, but the encoder {subwords} vectors; {remedy}.")

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for pickle, copies and hashes of data sets, which the words read so far must not change."""
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as they are saved, without transformers' deep copy, which not every function allows."""
        plain = copy.copy(self)
        plain.pos_tagger = plain.text_splitter = None
        return ProcessorMixin.to_dict(plain)

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> Any:
        """Writes the tokenizer, the options, the vocabularies and the remote code that reads them."""
        self.auto_map = {"AutoProcessor": AUTO_MAP["AutoProcessor"]}
        save_remote_code(save_directory)
        if self.vocabulary_parts:
            # In ASCII: corpora may contain lone surrogates, which UTF-8 cannot encode.
            (Path(save_directory) / VOCABULARIES_FILE).write_text(json.dumps(self.vocabularies, indent=0), "ascii")
        for name in ("is_local", "local_files_only"):  # by which it was loaded: transformers would save them
            self.tokenizer.init_kwargs.pop(name, None)
        return super().save_pretrained(save_directory, push_to_hub=push_to_hub, **options)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, **kwargs: Any) -> "TriaffineProcessor":  # type: ignore[override]
        """As in transformers, with the vocabularies. FileNotFoundError or ValueError for missing or damaged files."""
        # With None, transformers asks whether to run code that the tokenizer names, and reads the answer from stdin.
        kwargs["trust_remote_code"] = bool(kwargs.get("trust_remote_code"))
        if len(commit := Path(__file__).parent.name) == 40:  # where transformers has this code from: no other runs
            kwargs["code_revision"] = commit

        def find(name: str) -> str:
            path = find_file(pretrained_model_name_or_path, name, kwargs)
            if path is None:
                remedy = "Give a trained model; TriaffineProcessor.from_encoder() makes a new processor"
                raise FileNotFoundError(f"{pretrained_model_name_or_path} has no {name}. {remedy}.")
            return path

        with reading(str(pretrained_model_name_or_path), f"one of config.json, {', '.join(FILES)}"):
            refuse_redirections(pretrained_model_name_or_path, FILES[0], kwargs)
            for name in FILES[:2]:
                find(name)
            processor = super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        if processor.vocabulary_parts:
            path = find(VOCABULARIES_FILE)
            with reading(f"{path} is damaged (save the processor again)"):
                processor.vocabularies = json.loads(Path(path).read_text(encoding="utf-8"))
                for part in processor.vocabulary_parts:
                    known = processor.vocabularies.get(part, {})
                    if UNKNOWN not in known or not {*known.values()} <= {*range(len(known))}:
                        raise ValueError(f"the vocabulary of {part} lacks {UNKNOWN}, or has other ids than 0, 1, 2, …")
        return processor


def _subwords(sentences: Sequence[Sequence[str]], ids: Sequence[bytes], counts: Sequence[int]) -> Subwords:
    """The sub-words of sentences from those of all their words, and the number that each word has."""
    of_words = np.array(counts, dtype=np.int64)
    num_words = np.array([*map(len, sentences)], dtype=np.int64)
    before = np.append(0, of_words.cumsum())[np.append(0, num_words.cumsum())]
    words = ranges(np.zeros_like(num_words), num_words).repeat(of_words)
    return Subwords(np.frombuffer(b"".join(ids), np.int64), words, np.diff(before))


def beginning(word: str) -> str:
    """The part of a word that becomes sub-words."""
    return clean_text(composed(word[:LONGEST_WORD])[:MAX_CHARACTERS_OF_SUBWORDS])


def check_parts(name: str, parts: Iterable[str]) -> None:
    """Raises ValueError if the option `name` has unknown parts of a word."""
    if unknown := [part for part in parts if part not in VOCABULARY_PARTS]:
        raise ValueError(f"`{name}` holds {unknown}; choose among {', '.join(VOCABULARY_PARTS)}.")


def fill_in_tags(
    sentences: Sequence[Sequence[str]], pos: Iterable[Sequence[str]], tagger: PosTagger | None
) -> list[Sequence[str]]:
    """The parts of speech of each sentence: those in `pos`, or else the tagger's; without a tagger unknown ones."""
    tags = list(pos)
    untagged = [number for number, words in enumerate(sentences) if len(words) and not len(tags[number])]
    found: Iterable[Sequence[str]] = [[UNKNOWN] * len(sentences[number]) for number in untagged]
    if untagged and tagger is not None:
        found = tagger([sentences[number] for number in untagged])
    elif untagged:
        logger.warning_once(
            "The model was trained with parts of speech, but the text has none, so its words are tagged as unknown. "
            "Give the tags with the words, or a `pos_tagger`."
        )
    for number, of_sentence in zip(untagged, found, strict=False):
        tags[number] = of_sentence
    for words, of_sentence in zip(sentences, tags, strict=True):
        if len(words) != len(of_sentence):
            sentence = f"A sentence of {len(words)} words ({' '.join(words)[:60]})"
            raise ValueError(f"{sentence} has {len(of_sentence)} part-of-speech tags.")
    return tags


def _needs_space(tokenizer: Any) -> bool:
    """True if words need a space before them, without which byte-level tokenizers read the rest of another word."""

    def last_of(text: Any, **options: Any) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, **options)["input_ids"])[-1:]

    in_text = last_of("x the")
    plain, spaced = (last_of(["x", word], is_split_into_words=True) for word in ("the", " the"))
    return plain != in_text and spaced == in_text


def _ids(names: Iterable[str], vocabulary: dict[str, int]) -> np.ndarray:
    return np.array([vocabulary.get(name, vocabulary[UNKNOWN]) for name in names], dtype=np.int64)


def _first_id(tokenizer: Any, *names: str) -> int:
    for name in names:
        if (number := getattr(tokenizer, name, None)) is not None:
            return number
    raise ValueError(f"TriaffineProcessor: the tokenizer has none of {', '.join(names)}; add such a special token.")


complete_import(__name__)
