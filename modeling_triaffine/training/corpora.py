"""The data of a run: its files, the number of its sentences, and which words they are split into.

A corpus may split words in its own way (GENIA at the boundaries of its entities: `CD28 | -mediated`), and a model
trained on these words only is silently much worse on raw text, which its own word splitter splits. So a model is
trained on the words of raw text if the corpus has its text, and scored on both.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import DatasetDict, concatenate_datasets

from ..data import Text, add_context
from ..data.loading import CorpusPart, read_parts
from ..model.options_triaffine import MODEL_OPTIONS, ProcessorOptions
from ..model.text_triaffine import word_splitter
from .options import OWN_OPTIONS
from .plan import TrainingPlan
from .start import BaseModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """The splits of a run.

    Attributes:
        words: the words to train on: those of the "corpus", those of raw "text", or "both".
        types: the entity types in the training data, before its sentences are limited.
        given: the splits in the words of the corpus, on which the model is scored.
        to_train_on: the splits for training and for the choice of the best checkpoint. With "both", training sentences
            whose words differ in raw text come twice; validation is on raw text.
        texts: the texts of each split to score that has its text.
    """

    words: str
    types: set[str]
    given: DatasetDict
    to_train_on: DatasetDict
    texts: dict[str, list[Text]]


def read_corpus(plan: TrainingPlan, base: BaseModel) -> Corpus:
    """Reads the splits train, validation and test of a run, each file once, as the model to start from reads texts."""
    paths: list[str | Mapping[str, str]] = [plan.train_file] if plan.train_file else []
    of_splits = {"validation": plan.validation_file, "test": plan.test_file}
    paths += [{split: file} for split, file in of_splits.items() if file]
    parts: list[CorpusPart] = []
    for path in paths:
        parts += read_parts(path, plan.data_format, max_bad_records=plan.max_bad_records)
    reads_tags, context, max_subwords = (
        getattr(base.config, name) if base.config else plan.config.get(name, MODEL_OPTIONS[name].default)
        for name in ("pos_embedding_size", "context", "max_subwords")
    )
    words = _choose_words(parts, plan, bool(reads_tags))
    reader: Any = base.processor or ProcessorOptions  # whose fields are its defaults
    split_words = word_splitter(plan.word_splitter or reader.word_splitter)
    split_sentences = plan.sentence_splitter or reader.sentence_splitter
    types: set[str] = set()
    held_out: set[Any] = set()

    def load(in_own_words: bool) -> DatasetDict:
        """The splits in the words of the corpus, where it has its own, or in those of raw text."""
        splits: dict[str, Any] = {}
        for part in parts:
            splits |= part.sentences(split_words, split_sentences, in_own_words)
        if "train" not in splits:
            raise ValueError("There is no training data; give --train_file.")
        if in_own_words:
            types.update(entity["type"] for entities in splits["train"]["entities"] for entity in entities)
        if in_own_words and plan.dev_share:
            held_out.update(_choose_dev(splits, plan.dev_share, plan.training.seed))
        if held_out:
            train = splits["train"]
            names = zip(train["doc_id"], train["sent_id"], strict=True)
            is_held = [not held_out.isdisjoint(of_sentence) for of_sentence in names]
            splits["validation"] = train.select([row for row, held in enumerate(is_held) if held])
            splits["train"] = train.select([row for row, held in enumerate(is_held) if not held])
        if plan.max_train_samples is not None:
            splits["train"] = splits["train"].take(min(plan.max_train_samples, len(splits["train"])))
        return add_context(DatasetDict(splits), context, max_subwords)

    given = to_train_on = load(in_own_words=True)
    if "validation" not in given and plan.training.eval_strategy != "no":
        raise ValueError("There is no validation data: --dev_share 0.1 holds out a tenth (docs/corpora.md#dev-sets).")
    if "test" not in given and plan.training.do_predict:
        raise ValueError("There is no test data to score (--do_predict); give --test_file.")
    if words != "corpus" and any(part.has_words for part in parts):
        to_train_on = load(in_own_words=False)
    if words == "both":
        own, cut = given["train"], to_train_on["train"]
        known = {(name, *tokens) for name, tokens in zip(own["id"], own["tokens"], strict=True)}
        pairs = zip(cut["id"], cut["tokens"], strict=True)
        others = cut.select([row for row, (name, tokens) in enumerate(pairs) if (name, *tokens) not in known])
        to_train_on["train"] = concatenate_datasets([own, others])
    logger.info("Read %s.", ", ".join(f"{len(records):,} {split} sentences" for split, records in given.items()))
    logger.info("Words: %s (--words).", OWN_OPTIONS["words"].meanings[words])
    return Corpus(words, types, given, to_train_on, _texts_to_score(parts, given, held_out))


def _texts_to_score(parts: Sequence[CorpusPart], given: DatasetDict, held_out: set[Any]) -> dict[str, list[Text]]:
    """Returns the texts of the splits to score, of the last part with the split; none of a split with words only."""
    found: dict[str, list[Text]] = {}
    for split in ("validation", "test"):
        origin = "train" if held_out and split == "validation" else split
        part = [part for part in parts if origin in part.texts][-1] if split in given else None
        if part is not None and part.is_written:
            found[split] = [text for text in part.texts[origin] if origin == split or text["doc_id"] in held_out]
    return found


def _choose_dev(splits: Mapping[str, Any], share: float, seed: int) -> list[Any]:
    """Returns the documents of the training data to validate on; of a single one, numbers of its sentences."""
    if "validation" in splits:
        raise ValueError("There is validation data; leave out --dev_share.")
    # Texts of one document, such as its pages, are numbered after its name: "report", "report#2".
    names = {name: name.rsplit("#", 1)[0] for name in sorted({*splits["train"]["doc_id"]})}
    if len(documents := sorted({*names.values()})) == 1:
        names, documents = dict(zip(names, names, strict=True)), [*names]
    unit, keys = ("documents", documents) if len(names) > 1 else ("sentences", sorted({*splits["train"]["sent_id"]}))
    chosen = random.Random(seed).sample(keys, max(1, round(share * len(keys))))
    logger.info("Validation data: %d of %d training %s (--dev_share).", len(chosen), len(keys), unit)
    return [name for name in names if names[name] in chosen] if len(names) > 1 else chosen


def _choose_words(parts: Sequence[CorpusPart], plan: TrainingPlan, reads_tags: bool) -> str:
    """Returns the words to train on: those of --words, or what `auto` means for these files."""
    if not any(part.has_words for part in parts):
        return "text"
    if plan.words != "auto":
        return plan.words
    if reads_tags:
        logger.info("Words: those of the corpus, to which its parts of speech belong.")
        return "corpus"
    return "text" if all(part.is_written for part in parts) else "both"
