"""Sentences and words of raw text by spaCy, in place of the rules that travel with a model."""

from collections.abc import Sequence
from typing import Any

from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, Offsets, TextSplitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import split_words
from .parts_of_speech import spacy_pipeline

SPACY_WORDS = "spacy"
# Expensive components that no sentence splitter needs but for the parser, which may be one.
NOT_NEEDED = ("ner", "lemmatizer", "attribute_ruler", "tagger", "morphologizer")


def spacy_splitter(model: Any, words: str | dict[str, Any] = DEFAULT_WORD_SPLITTER) -> TextSplitter:
    """A splitter for `NestedNERPipeline(text_splitter=…)` or `TriaffineProcessor.text_splitter`: sentences by spaCy.

    Args:
        model: name or folder of an installed spaCy pipeline that marks sentences (`xx_sent_ud_sm` does for many
            languages), or the pipeline itself.
        words: how sentences are split into words: as the model was trained, "punctuation" by default (see
            [`text_triaffine.word_splitter`]); "spacy" takes spaCy's tokens.

    Raises:
        ImportError: spaCy is not installed.
        OSError: the pipeline is not installed.
        ValueError: it marks no sentences; or there is no such word splitter.

    Examples:
        >>> import spacy
        >>> from modeling_triaffine.data import spacy_splitter
        >>> pipeline = spacy.blank("en")
        >>> _ = pipeline.add_pipe("sentencizer")
        >>> [[tuple(word) for word in sentence] for sentence in spacy_splitter(pipeline)("It rained. Orsk slept.")]
        [[(0, 2), (3, 9), (9, 10)], [(11, 15), (16, 21), (21, 22)]]
    """
    pipeline = spacy_pipeline(model, "Splitting by spaCy", NOT_NEEDED)
    if not pipeline("A b").has_annotation("SENT_START"):
        raise ValueError(
            f"The spaCy pipeline {model!s} marks no sentences. Add a component that does, such as "
            'pipeline.add_pipe("sentencizer"), or name a pipeline that has a parser or a senter.'
        )
    split = None if words == SPACY_WORDS else named_word_splitter(words)

    def sentences(text: str) -> list[Sequence[Offsets]]:
        found: list[Sequence[Offsets]] = []
        for sentence in pipeline(text).sents:
            if split is None:
                found.append([(token.idx, token.idx + len(token)) for token in sentence if not token.is_space])
            else:
                first = sentence.start_char
                found.append([(first + start, first + end) for start, end in split_words(sentence.text, split)])
        return found

    return sentences
