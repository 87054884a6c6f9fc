"""TriaffineProcessor: text or words → tensors, and word spans → character offsets.

One sentence is one feature dict of arrays; how features become batches is in `batches_triaffine.py`, how raw text is
cut into sentences and words in `text_triaffine.py`. Labels are added by the collator, which stays at home.
"""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers import AutoTokenizer, BatchFeature, ProcessorMixin
from transformers.utils import logging

from .batches_triaffine import PADDING_VALUES, Feature, pad_features, stack_arrays
from .checks_triaffine import check_integer, check_kind, reading
from .configuration_triaffine import CHOICES, MAX_SUBWORDS
from .layout_triaffine import lay_out
from .repository_triaffine import (
    AUTO_MAP,
    PushMixin,
    check_available,
    code_reference,
    describe_missing,
    find_file,
    save_remote_code,
)
from .text_triaffine import (
    DEFAULT_WORD_SPLITTER,
    Piece,
    TextSplitter,
    clean_text,
    in_windows,
    neighbouring_words,
    sentences_by,
    split_text,
)
from .text_triaffine import sentence_splitter as make_sentence_splitter
from .text_triaffine import word_splitter as make_word_splitter
from .vocabularies_triaffine import UNKNOWN, check_parts, count_vocabularies, read_vocabularies, write_vocabularies

logger = logging.get_logger(__name__)

FILES = ("processor_config.json", "tokenizer.json", "tokenizer_config.json")  # transformers can do without the last

RETURNED = ("pt", "np")
# Keywords of tokenizers that say what is done anyway, and what to use in place of others.
DONE_ANYWAY = {"padding": (True, "longest"), "truncation": (True, False, None, "longest_first", "do_not_truncate")}
INSTEAD_OF = {
    "padding": "batches are padded to their longest sentence; `encode` gives features without padding",
    "truncation": "no sentence is cut; the processor's `max_subwords` says how long its windows are",
    "max_length": "the processor's `max_subwords` says how many sub-words the encoder sees at once",
    "stride": "windows overlap by half",
    "text_pair": "give context as `left_tokens` and `right_tokens`",
    "return_offsets_mapping": "`encode_text` gives each sentence with the offsets of its words",
}

PosTagger = Callable[[list[Sequence[str]]], Iterable[Sequence[str]]]
# A word is read by its first characters, by the character LSTM and by the encoder; a hostile word of thousands would
# otherwise widen the whole batch.
MAX_CHARACTERS = 64
MAX_CHARACTERS_OF_SUBWORDS = 256
# Bounds of the numeric options: span scores grow with the square of the sentence length.
LIMITS = {"max_subwords": (8, MAX_SUBWORDS), "max_sentence_words": (1, 4096)}
# How a tokenizer was loaded; transformers would save it with the tokenizer.
LOADING_OPTIONS = ("is_local", "local_files_only")
# Sentences of a text that are encoded together, so that memory does not grow with the text.
_SENTENCES_AT_ONCE = 64


class TriaffineProcessor(PushMixin, ProcessorMixin):
    """Makes the inputs of [`TriaffineForNestedNER`] from words or raw text.

    Args:
        tokenizer: fast tokenizer of the encoder.
        max_subwords: sub-words the encoder sees at once, specials included. A longer sentence is laid out as windows of
            just this width that overlap by half; each word counts in the window where it stands most central.
        context: neighbours of a sentence that raw text is encoded with: "none", "previous_sentence" or "document".
        word_splitter: how raw text is cut into words, see [`text_triaffine.word_splitter`].
        sentence_splitter: "punctuation", "lines" or "none".
        max_sentence_words: longer sentences of raw text are scored in windows of this many words that overlap by half;
            an entity of up to half as many words is in one of them whole, and counts in one.
        vocabulary_parts: which of "words", "pos", "chars" the model reads beside sub-words; set by
            [`build_vocabularies`].

    Attributes:
        pos_tagger: tags sentences given without parts of speech, if the model uses them: a function from a list of
            sentences, each a list of words, to the tags of each. It is not saved.
        text_splitter: splits raw text in place of `sentence_splitter` and `word_splitter`, if given: a function from a
            text to its sentences, each a list of the (start, end) of its words. It is not saved.
    """

    pos_tagger: PosTagger | None = None
    text_splitter: TextSplitter | None = None

    def __init__(
        self,
        tokenizer: Any,
        max_subwords: int = 192,
        context: str = "none",
        word_splitter: str | dict[str, Any] = DEFAULT_WORD_SPLITTER,
        sentence_splitter: str = "punctuation",
        max_sentence_words: int = 256,
        vocabulary_parts: Sequence[str] = (),
    ):
        super().__init__(tokenizer)
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError("TriaffineProcessor needs a fast tokenizer: only these map sub-words to words.")
        if context not in CHOICES["context"]:
            raise ValueError(f"`context` is {context!r}; choose one of {', '.join(map(repr, CHOICES['context']))}.")
        for name, value in (("max_subwords", max_subwords), ("max_sentence_words", max_sentence_words)):
            check_integer("TriaffineProcessor", name, value, *LIMITS[name])
        check_kind("TriaffineProcessor", "sentence_splitter", sentence_splitter, str, "the name of one")
        check_kind("TriaffineProcessor", "vocabulary_parts", vocabulary_parts, (list, tuple), "a list of parts")
        check_parts("vocabulary_parts", vocabulary_parts)
        make_word_splitter(word_splitter), make_sentence_splitter(sentence_splitter)  # raise for an unknown choice
        self.max_subwords = max_subwords
        self.context = context
        self.word_splitter = word_splitter
        self.sentence_splitter = sentence_splitter
        self.max_sentence_words = max_sentence_words
        self.vocabulary_parts = list(vocabulary_parts)
        self.vocabularies: dict[str, dict[str, int]] = {}
        self._word_prefix = " " if _needs_space(tokenizer) else ""
        self._start_id = _first_id(tokenizer, "cls_token_id", "bos_token_id")
        self._separator_id = _first_id(tokenizer, "sep_token_id", "eos_token_id")
        self._unknown_id = _first_id(tokenizer, "unk_token_id", "pad_token_id", "eos_token_id")
        self._pad_id = _first_id(tokenizer, "pad_token_id", "eos_token_id")

    @classmethod
    def from_encoder(cls, name_or_path: str, **options: Any) -> "TriaffineProcessor":
        """The processor for a pretrained encoder; `options` are those of the class."""
        check_available(name_or_path, {})
        return cls(AutoTokenizer.from_pretrained(name_or_path, add_prefix_space=True), **options)

    def __call__(
        self,
        text: str | Sequence[str] | None = None,
        words: Sequence[str] | Sequence[Sequence[str]] | None = None,
        pos: Sequence[Sequence[str]] | None = None,
        left_tokens: Sequence[Sequence[str]] | None = None,
        right_tokens: Sequence[Sequence[str]] | None = None,
        return_tensors: str = "pt",
        is_split_into_words: bool = False,
        **options: Any,
    ) -> BatchFeature:
        """A padded batch: one row a sentence of the text(s), or one row a sentence of given words.

        Args:
            text: one text or several; with `is_split_into_words`, as of tokenizers, the same as `words`.
            words: the words of one sentence, or of each of several.
            pos, left_tokens, right_tokens: parts of speech of each sentence, and its context before and behind.
            return_tensors: "pt" or "np".
            options: `padding` and `truncation` of tokenizers, which may say what is done anyway: a batch is padded to
                its longest sentence, a long sentence is windowed and never cut.

        Raises:
            ValueError, TypeError: neither or both of `text` and `words`, no sentence at all, a keyword that cannot be
                followed.
        """
        if return_tensors not in RETURNED:
            raise ValueError(f"`return_tensors` is {return_tensors!r}; choose one of {', '.join(map(repr, RETURNED))}.")
        _check_options(options)
        if is_split_into_words and words is None:
            text, words = None, text
        if (text is None) == (words is None):
            raise ValueError("TriaffineProcessor: give either `text` or `words`.")
        if text is not None:
            texts = [text] if isinstance(text, str) else text
            features = [feature for one in texts for feature, _ in self.encode_text(one)]
        else:
            assert words is not None
            sentences = [words] if not words or isinstance(words[0], str) else words
            features = self.encode(sentences, pos, left_tokens, right_tokens)  # type: ignore[arg-type]
        if not features:
            raise ValueError("TriaffineProcessor: there is no text and no sentence in the list given.")
        return BatchFeature(self.pad(features), tensor_type=None if return_tensors == "pt" else return_tensors)

    def split_text(self, text: str) -> Iterator[Piece]:
        """The sentences of a raw text, long ones in windows, as the model reads them.

        A text without words is one empty sentence.
        """
        size, shared = self.max_sentence_words, self.max_sentence_words // 2
        if self.text_splitter is not None:
            pieces = in_windows(sentences_by(self.text_splitter, text), size, shared)
        else:
            sentences, words = make_sentence_splitter(self.sentence_splitter), make_word_splitter(self.word_splitter)
            pieces = split_text(text, sentences, words, size, shared)
        first = next(pieces, Piece([]))
        yield first
        yield from pieces

    def encode_text(self, text: str) -> Iterator[tuple[Feature, Piece]]:
        """The feature of each sentence, or window of a long one, of a raw text, and where its words are."""
        pieces = self.split_text(text)
        # Every sentence has a word at least, so this many sentences hold all the context there can be.
        reach = 0 if self.context == "none" else self.max_subwords
        before: list[Piece] = []
        waiting = list(islice(pieces, _SENTENCES_AT_ONCE + reach))
        while waiting:
            count = min(_SENTENCES_AT_ONCE, len(waiting))
            seen = [*before, *waiting]
            inside = slice(len(before), len(before) + count)
            words = [[text[start:end] for start, end in piece.offsets] for piece in seen]
            # Neighbouring windows of one sentence share words: these are no context.
            not_in_next = [own[: len(own) - piece.shared_after] for own, piece in zip(words, seen, strict=True)]
            not_in_last = [own[piece.shared_before :] for own, piece in zip(words, seen, strict=True)]
            left, _ = neighbouring_words(not_in_next, self.context, self.max_subwords, inside)
            _, right = neighbouring_words(not_in_last, self.context, self.max_subwords, inside)
            yield from zip(self.encode(words[inside], None, left, right), waiting[:count], strict=True)
            before = seen[: inside.stop][-reach:] if reach else []
            waiting = [*waiting[count:], *islice(pieces, count)]

    def encode(
        self,
        words: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str]] | None = None,
        left_tokens: Sequence[Sequence[str]] | None = None,
        right_tokens: Sequence[Sequence[str]] | None = None,
    ) -> list[Feature]:
        """Features of sentences of given words, with their parts of speech and context where there are any.

        A feature holds input_ids, attention_mask, token_type_ids, word_index [S], num_words, and word_ids, pos_ids [N],
        char_ids [N, C] when the processor has these vocabularies. A word without sub-words becomes the unknown token.
        """
        for name, side in (("pos", pos), ("left_tokens", left_tokens), ("right_tokens", right_tokens)):
            if side is not None and len(side) != len(words):
                raise ValueError(f"`{name}` is given for {len(side)} sentences, `words` for {len(words)}.")
        room = self.max_subwords
        left = self._context_subwords(left_tokens and [side[-room:] for side in left_tokens], len(words))
        right = self._context_subwords(right_tokens and [side[:room] for side in right_tokens], len(words))
        tags = self._tags(words, pos) if "pos" in self.vocabulary_parts else [[]] * len(words)
        features = []
        for number, (subwords, index) in enumerate(self._subwords(words)):
            feature = lay_out(
                subwords, index, left[number], right[number], self.max_subwords, self._start_id, self._separator_id
            )
            feature["num_words"] = len(words[number])
            feature.update(self._word_parts(words[number], tags[number]))
            features.append(feature)
        return features

    def pad(self, features: Sequence[Feature]) -> dict[str, Tensor]:
        """One batch of the features, each array padded to its longest; keys that are no model input are left out.

        `packed_words` [n] is the place of each real word among the B · N padded ones, position by position: b·N + k,
        ordered by k, then b.
        """
        return pad_features(features, self._pad_id)

    def _subwords(self, sentences: Sequence[Sequence[str]]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Sub-word ids of each sentence and the word each belongs to; every word has at least one."""
        cleaned = [
            [self._word_prefix + clean_text(word[:MAX_CHARACTERS_OF_SUBWORDS]) for word in sentence]
            for sentence in sentences
        ]
        encoded = self.tokenizer(
            cleaned,
            is_split_into_words=True,
            add_special_tokens=False,
            split_special_tokens=True,  # a word that is written "[SEP]" is a word
            verbose=False,
        )
        result = []
        for number, sentence in enumerate(cleaned):
            subwords = np.asarray(encoded["input_ids"][number], dtype=np.int64)
            index = np.asarray(encoded.word_ids(number), dtype=np.int64)
            missing = np.flatnonzero(np.bincount(index, minlength=len(sentence)) == 0)
            if missing.size:
                index = np.concatenate([index, missing])
                subwords = np.concatenate([subwords, np.full(missing.size, self._unknown_id)])
                order = index.argsort(kind="stable")
                subwords, index = subwords[order], index[order]
            result.append((subwords, index))
        return result

    def _context_subwords(self, sides: Sequence[Sequence[str]] | None, count: int) -> list[np.ndarray]:
        """Sub-word ids of what stands on one side of each of `count` sentences."""
        if not sides or not any(sides):
            return [np.zeros(0, dtype=np.int64)] * count
        return [subwords for subwords, _ in self._subwords(sides)]

    def _tags(self, sentences: Sequence[Sequence[str]], pos: Sequence[Sequence[str]] | None) -> list[Sequence[str]]:
        """Parts of speech of each sentence: those given, else the tagger's, else the unknown one for every word."""
        tags = list(pos) if pos else [[]] * len(sentences)
        untagged = [number for number, words in enumerate(sentences) if len(words) and not len(tags[number])]
        if untagged:
            tagger = self.pos_tagger or _tag_unknown
            found = list(tagger([sentences[number] for number in untagged]))
            if len(found) != len(untagged):
                raise ValueError(f"`pos_tagger` was given {len(untagged)} sentences and tagged {len(found)}.")
            for number, of_sentence in zip(untagged, found, strict=True):
                tags[number] = of_sentence
        return tags

    def _word_parts(self, words: Sequence[str], tags: Sequence[str]) -> Feature:
        """Ids of the optional word parts; `tags` are read where parts of speech are one of them."""
        parts: Feature = {}
        if "words" in self.vocabulary_parts:
            known = self.vocabularies["words"]
            unknown = known[UNKNOWN]
            parts["word_ids"] = np.array([known.get(w, known.get(w.lower(), unknown)) for w in words], dtype=np.int64)
        if "pos" in self.vocabulary_parts:
            known = self.vocabularies["pos"]
            if len(tags) != len(words):
                raise ValueError(
                    f"A sentence of {len(words)} words ({' '.join(words)[:60]}) has {len(tags)} tags in `pos`."
                )
            parts["pos_ids"] = np.array([known.get(tag, known[UNKNOWN]) for tag in tags], dtype=np.int64)
        if "chars" in self.vocabulary_parts:
            known = self.vocabularies["chars"]
            spelled = [np.array([known.get(c, known[UNKNOWN]) for c in word[:MAX_CHARACTERS]]) for word in words]
            parts["char_ids"] = stack_arrays(spelled, 0).numpy() if spelled else np.zeros((0, 1), dtype=np.int64)
        return parts

    def build_vocabularies(self, records: Iterable[dict[str, Any]], parts: Sequence[str], min_count: int = 1) -> None:
        """Takes the words, parts of speech or characters of the training records that the model's `parts` need.

        Ids: 0 padding, 1 unknown, then by falling frequency, equal ones in order of spelling.
        """
        check_parts("parts", parts)
        self.vocabularies |= count_vocabularies(records, parts, min_count)
        self.vocabulary_parts = list(parts)

    def entities_in_text(self, text: str, piece: Piece, entities: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Entities in words of a sentence → entities in characters of the text, as every prediction is given out.

        Those of a window that count in the next or the last one are left out.
        """
        found = []
        for entity in entities:
            if not piece.owns(entity["start"], entity["end"]):
                continue
            start, end = piece.offsets[entity["start"]][0], piece.offsets[entity["end"] - 1][1]
            word = text[start:end]
            found.append(
                {"entity_group": entity["type"], "score": entity["score"], "word": word, "start": start, "end": end}
            )
        return found

    def check_fits(self, config: Any) -> None:
        """Raises ValueError when the model of this configuration reads sentences laid out in another way."""
        if self.max_subwords != config.max_subwords:
            raise ValueError(
                f"The processor lays out windows of {self.max_subwords} sub-words, the model reads windows of "
                f"{config.max_subwords}; build the processor with max_subwords={config.max_subwords}."
            )
        read = {"words": config.has_words, "pos": config.has_pos, "chars": config.has_chars}
        missing = [part for part, is_read in read.items() if is_read and part not in self.vocabulary_parts]
        if missing:
            raise ValueError(
                f"The model reads {', '.join(missing)} beside sub-words, the processor has no vocabulary of them: take "
                "the processor that was saved with the model."
            )
        subwords = getattr(config.encoder_config, "vocab_size", None)
        highest = max(self.tokenizer.get_vocab().values(), default=0)
        if subwords is not None and highest >= subwords:
            raise ValueError(
                f"The tokenizer gives sub-words ids up to {highest}, the encoder has vectors of {subwords} sub-words: "
                f"take the tokenizer that was saved with the model, or call resize_token_embeddings({highest + 1})."
            )
        rows = {"words": config.word_vocab_size, "pos": config.pos_vocab_size, "chars": config.char_vocab_size}
        if larger := [
            part for part, is_read in read.items() if is_read and len(self.vocabularies.get(part, ())) > rows[part]
        ]:
            raise ValueError(
                f"The processor's vocabulary of {', '.join(larger)} has more entries than the model has vectors of "
                "them: take the processor that was saved with the model."
            )

    def to_dict(self) -> dict[str, Any]:
        """The options, as they are saved. transformers deep-copies all attributes, which not every function allows."""
        plain = copy.copy(self)
        plain.pos_tagger = plain.text_splitter = None
        return super(TriaffineProcessor, plain).to_dict()

    @property
    def model_input_names(self) -> list[str]:
        return ["num_words", "packed_words", *PADDING_VALUES]

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoProcessor") -> None:
        """Nothing to register: transformers would write references of its own into the tokenizer, too."""

    def refer_to_code(self, repository: str | None) -> None:
        """Refers to the remote code in a Hub repository, or (None) in the files that `save_pretrained` writes."""
        self.auto_map = {"AutoProcessor": code_reference(AUTO_MAP["AutoProcessor"], repository)}

    def save_pretrained(self, save_directory: str | os.PathLike[str], push_to_hub: bool = False, **options: Any) -> Any:
        """Writes the tokenizer, the options, the vocabularies and the remote code that reads them."""
        if "--" not in getattr(self, "auto_map", {}).get("AutoProcessor", ""):
            self.refer_to_code(None)
            save_remote_code(save_directory, self.tokenizer.name_or_path)
        if self.vocabulary_parts:
            write_vocabularies(self.vocabularies, Path(save_directory))
        for name in LOADING_OPTIONS:
            self.tokenizer.init_kwargs.pop(name, None)
        return super().save_pretrained(save_directory, push_to_hub, **options)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str | os.PathLike[str], **kwargs: Any
    ) -> "TriaffineProcessor":
        for name in FILES[:2]:
            if find_file(pretrained_model_name_or_path, name, kwargs) is None:
                raise FileNotFoundError(describe_missing(pretrained_model_name_or_path, name))
        # None would ask whether to run what a stranger's tokenizer names, and take a text on standard input for a yes.
        kwargs["trust_remote_code"] = bool(kwargs.get("trust_remote_code"))
        with reading(str(pretrained_model_name_or_path), f"one of config.json, {', '.join(FILES)}"):
            processor = super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        if processor.vocabulary_parts:
            parts = processor.vocabulary_parts
            processor.vocabularies = read_vocabularies(pretrained_model_name_or_path, parts, kwargs)
        return processor


def _check_options(options: dict[str, Any]) -> None:
    """Raises for keywords of tokenizers that ask for something else than what is done."""
    for name, value in options.items():
        if name not in DONE_ANYWAY:
            instead = INSTEAD_OF.get(name, "it knows `text`, `words`, `pos`, `left_tokens`, `right_tokens`")
            raise TypeError(f"TriaffineProcessor has no keyword {name!r}: {instead}.")
        if value not in DONE_ANYWAY[name]:
            raise ValueError(f"TriaffineProcessor: `{name}` is {value!r}: {INSTEAD_OF[name]}.")


def _tag_unknown(sentences: list[Sequence[str]]) -> list[list[str]]:
    """The tagger of a processor that has none."""
    logger.warning_once(
        "The model was trained with parts of speech, the text comes without: its words are tagged unknown. Give the "
        "tags with the words, or a tagger: `pos_tagger` of the processor or the pipeline."
    )
    return [[UNKNOWN] * len(words) for words in sentences]


def _needs_space(tokenizer: Any) -> bool:
    """Whether a word must be given with a space before it to be cut as it is in running text.

    Byte-level tokenizers take a word without one for the rest of another word; some can be told (`add_prefix_space`),
    others do not listen.
    """

    def last_of(text: Any, **options: Any) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, **options)["input_ids"])[-1:]

    in_text = last_of("x the")
    if last_of(["x", "the"], is_split_into_words=True) == in_text:
        return False
    return last_of(["x", " the"], is_split_into_words=True) == in_text


def _first_id(tokenizer: Any, *names: str) -> int:
    for name in names:
        if (number := getattr(tokenizer, name, None)) is not None:
            return number
    raise ValueError(
        f"TriaffineProcessor: the tokenizer has none of {', '.join(names)}; give it such a special token, the "
        "encoder's input is built with it."
    )
