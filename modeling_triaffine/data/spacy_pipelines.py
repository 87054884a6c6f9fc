"""spaCy's pipelines as splitters of raw text and as taggers of words, in place of what travels with a model.

Parts of speech of a corpus are kept. For inference, the processor takes such functions, too
(`TriaffineProcessor.text_splitter` and `pos_tagger`).
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..errors import importing_extra
from ..model.processing_triaffine import PosTagger, fill_in_tags
from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, Offsets, TextSplitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import split_words

logger = logging.getLogger(__name__)

# Tag set → attribute of a spaCy token.
TAG_ATTRIBUTES = {"universal": "pos_", "fine": "tag_"}
# Expensive components that no tagger, and no sentence splitter but for the parser, needs.
NOT_NEEDED = ("ner", "lemmatizer")
ONLY_FOR_TAGS = ("attribute_ruler", "tagger", "morphologizer")


def spacy_splitter(model: Any, words: str | dict[str, Any] = DEFAULT_WORD_SPLITTER) -> TextSplitter:
    """A splitter for `NestedNERPipeline(text_splitter=…)` or `TriaffineProcessor.text_splitter`: sentences by spaCy.

    Args:
        model: name or folder of an installed spaCy pipeline that marks sentences (`xx_sent_ud_sm` does for many
            languages), or the pipeline itself.
        words: how sentences are split into words: as the model was trained, "punctuation" by default (see
            [`text_triaffine.word_splitter`]).

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
    pipeline = _open_pipeline(model, (*NOT_NEEDED, *ONLY_FOR_TAGS))
    if not pipeline("A b").has_annotation("SENT_START"):
        raise ValueError(f"The spaCy pipeline {model!s} marks no sentences: pipeline.add_pipe('sentencizer').")
    split = named_word_splitter(words)

    def sentences(text: str) -> list[Sequence[Offsets]]:
        found: list[Sequence[Offsets]] = []
        for sentence in pipeline(text).sents:
            first = sentence.start_char
            found.append([(first + start, first + end) for start, end in split_words(sentence.text, split)])
        return found

    return sentences


def spacy_tagger(model: Any, tags: str = "universal") -> PosTagger:
    """Returns a tagger of tokenized sentences that uses a spaCy pipeline.

    Args:
        model: name or folder of an installed spaCy pipeline, or the pipeline itself.
        tags: "universal" parts of speech, or the "fine" ones of the pipeline (for English, those of the Penn Treebank).

    Raises:
        ImportError: spaCy is not installed.
        OSError: the pipeline is not installed.
        ValueError: `tags` is unknown; when called: the pipeline has no tagger.
    """
    if tags not in TAG_ATTRIBUTES:
        raise ValueError(f"`tags` is {tags!r}; choose one of {', '.join(map(repr, TAG_ATTRIBUTES))}.")
    attribute, pipeline = TAG_ATTRIBUTES[tags], _open_pipeline(model, (*NOT_NEEDED, "parser"))
    import spacy

    def tag(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        # spaCy rejects empty words, which the processor allows.
        docs = (spacy.tokens.Doc(pipeline.vocab, words=[word or " " for word in words]) for words in sentences)
        tagged = [[getattr(token, attribute) for token in doc] for doc in pipeline.pipe(docs)]
        if any(map(len, tagged)) and not any(tag for of_sentence in tagged for tag in of_sentence):
            raise ValueError(f"The spaCy pipeline {model!s} has no {tags} tags; use one with a tagger.")
        return tagged

    return tag


def _open_pipeline(model: Any, exclude: Sequence[str]) -> Any:
    """A spaCy pipeline by its name or folder, without the components to `exclude`; or the pipeline itself."""
    with importing_extra("spacy", "The spaCy pipeline needs spaCy"):
        import spacy
    if not isinstance(model, str | Path):
        return model
    try:
        return spacy.load(model, exclude=exclude)
    except OSError as error:
        remedy = f"python -m spacy download {model}"
        raise OSError(f"The spaCy pipeline {str(model)!r} is not installed: {remedy} ({error})") from None


def add_parts_of_speech(records: Dataset, tagger: PosTagger) -> Dataset:
    """Tags the records that have no part-of-speech tags.

    Args:
        tagger: a function from a list of sentences, each a list of words, to the tags of each sentence.

    Raises:
        ValueError: the tagger does not return one tag for each word.
    """
    given = list(records["pos"])
    columns = {**records.to_dict(), "pos": [*map(list, fill_in_tags(list(records["tokens"]), given, tagger))]}
    tagged = sum(1 for tags in given if not tags)
    logger.info("Parts of speech: %d of %d sentences tagged, the others have tags.", tagged, len(records))
    return Dataset.from_dict(columns, features=records.features, info=records.info.copy(), split=records.split)
