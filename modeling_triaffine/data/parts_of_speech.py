"""Parts of speech for sentences that come without: from any function that tags sentences, such as spaCy's taggers.

What a corpus says of parts of speech stays as it is. Where a model meets sentences without, its processor takes such a
function too (`TriaffineProcessor.pos_tagger`).
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..errors import missing_extra
from ..model.processing_triaffine import PosTagger

logger = logging.getLogger(__name__)

# What the two tag sets are called by a spaCy token.
SPACY_ATTRIBUTES = {"universal": "pos_", "fine": "tag_"}
# Parts of a spaCy pipeline that cost much and that no tag comes from.
SPACY_NOT_NEEDED = ("parser", "ner", "lemmatizer")


def spacy_tagger(model: Any, tags: str = "universal") -> PosTagger:
    """A tagger of sentences of given words, by a spaCy pipeline.

    Args:
        model: name or folder of a spaCy pipeline that is installed, or the pipeline itself.
        tags: "universal" parts of speech, or the pipeline's own "fine" ones (Penn's, for English).

    Raises:
        ImportError: spaCy is not installed.
        OSError: the pipeline is not.
        ValueError: there are no such tags; when called: the pipeline gives none.
    """
    if tags not in SPACY_ATTRIBUTES:
        raise ValueError(f"`tags` is {tags!r}; choose one of {', '.join(map(repr, SPACY_ATTRIBUTES))}.")
    try:
        import spacy
    except ImportError:
        raise missing_extra("Tagging by spaCy needs spaCy", "spacy") from None
    name, attribute = str(model), SPACY_ATTRIBUTES[tags]
    if isinstance(model, str | Path):
        try:
            model = spacy.load(model, exclude=SPACY_NOT_NEEDED)
        except OSError as error:
            raise OSError(f"spaCy has no pipeline {name!r} here: python -m spacy download {name} ({error})") from None

    def tag(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        # spaCy refuses an empty word, which a corpus may hold.
        docs = model.pipe(spacy.tokens.Doc(model.vocab, words=[word or " " for word in words]) for words in sentences)
        tagged = [[getattr(token, attribute) for token in doc] for doc in docs]
        if any(map(len, tagged)) and not any(tag for of_sentence in tagged for tag in of_sentence):
            raise ValueError(f"The spaCy pipeline {name!r} gives no {tags} tags; take one with a tagger.")
        return tagged

    return tag


def add_parts_of_speech(records: Dataset, tagger: PosTagger) -> Dataset:
    """The records, those without parts of speech with the tagger's.

    Args:
        tagger: a function from a list of sentences, each a list of words, to the tags of each.

    Raises:
        ValueError: the tagger does not give one tag a word.
    """
    tokens, pos = list(records["tokens"]), list(records["pos"])
    untagged = [number for number, tags in enumerate(pos) if not tags]
    found = list(tagger([tokens[number] for number in untagged])) if untagged else []
    if len(found) != len(untagged):
        raise ValueError(f"The tagger was given {len(untagged)} sentences and tagged {len(found)}.")
    for number, tags in zip(untagged, found, strict=True):
        if len(tags) != len(tokens[number]):
            raise ValueError(
                f"The tagger gave {len(tags)} tags for the {len(tokens[number])} words of sentence "
                f"{records[number]['id']!r}; it must give one a word."
            )
        pos[number] = list(tags)
    logger.info("Parts of speech: %d of %d sentences tagged, the others have theirs.", len(untagged), len(records))
    return Dataset.from_dict({**records.to_dict(), "pos": pos}, features=records.features)
