"""Part-of-speech tags for sentences without: from any function that tags sentences, such as spaCy's taggers.

Tags of the corpus are kept. For inference, the processor takes such a function, too (`TriaffineProcessor.pos_tagger`).
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..errors import importing_extra
from ..model.processing_triaffine import PosTagger, fill_in_tags

logger = logging.getLogger(__name__)

# Tag set → attribute of a spaCy token.
TAG_ATTRIBUTES = {"universal": "pos_", "fine": "tag_"}
# Expensive components of a spaCy pipeline that no tagger needs.
NOT_NEEDED = ("parser", "ner", "lemmatizer")


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
    with importing_extra("spacy", "Tagging by spaCy needs spaCy"):
        import spacy
    attribute = TAG_ATTRIBUTES[tags]
    pipeline = spacy.load(model, exclude=NOT_NEEDED) if isinstance(model, str | Path) else model

    def tag(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        # spaCy rejects empty words, which the processor allows.
        docs = (spacy.tokens.Doc(pipeline.vocab, words=[word or " " for word in words]) for words in sentences)
        tagged = [[getattr(token, attribute) for token in doc] for doc in pipeline.pipe(docs)]
        if any(map(len, tagged)) and not any(tag for of_sentence in tagged for tag in of_sentence):
            raise ValueError(f"The spaCy pipeline {model!s} has no {tags} tags; use one with a tagger.")
        return tagged

    return tag


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
