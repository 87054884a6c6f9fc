"""The data of a run: its files, the number of its sentences, and which words they are split into.

A corpus may split words in its own way (GENIA at the boundaries of its entities: `CD28 | -mediated`), and a model
trained on these words only is silently much worse on raw text, which its own word splitter splits. So a model is
trained on the words of raw text if the corpus has its text, and scored on both.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, concatenate_datasets
from transformers import AutoTokenizer

from ..data import Text, WordSplitter
from ..data.demo import write_demo_corpus
from ..data.loading import CorpusPart, read_parts
from ..data.parts_of_speech import add_parts_of_speech, spacy_tagger
from ..model.processing_triaffine import PosTagger
from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, SUBWORDS
from ..model.text_triaffine import word_splitter as make_word_splitter
from .options import DataArguments
from .plan import NestedNERTrainingArguments, TrainingPlan, recipe_library
from .start import BaseModel

logger = logging.getLogger(__name__)

# The recipe that has data of its own, and the name of the data.
DEMO, DEMO_NAME = "demo", "made-up demo corpus"
WORDS = {"corpus": "those of the corpus", "text": "those of raw text", "both": "those of the corpus and of raw text"}


@dataclass(frozen=True)
class Corpus:
    """The splits of a run.

    Attributes:
        words: the words to train on: those of the "corpus", those of raw "text", or "both".
        types: the entity types in the training data, before its sentences are limited.
        given: the splits in the words of the corpus, on which the model is scored.
        cut: the same sentences in the words of raw text; `given` itself if those are not trained on, or are the same.
        texts: the texts of each split to score that has its text, as far as they are complete within its limit.
        tagger: the one that tagged the sentences without parts of speech, if any was to.
    """

    words: str
    types: set[str]
    given: DatasetDict
    cut: DatasetDict
    texts: dict[str, list[Text]]
    tagger: PosTagger | None = None

    def change(self, function: Callable[[DatasetDict], DatasetDict]) -> "Corpus":
        """The corpus with `function` applied to its splits."""
        given = function(self.given)
        return replace(self, given=given, cut=given if self.cut is self.given else function(self.cut))

    def to_train_on(self) -> DatasetDict:
        """The splits for training and for the choice of the best checkpoint.

        With "both", training sentences whose words differ in raw text come twice; validation is on raw text.
        """
        if self.words != "both" or "train" not in self.given:
            return self.cut
        return DatasetDict({**self.cut, "train": concatenate_datasets([self.given["train"], self._cut_differently()])})

    def to_start_from(self) -> DatasetDict:
        """The sentences to train on, and those to score in their own words: raw text may lack entities of a type."""
        to_score = {split: records for split, records in self.given.items() if split != "train"}
        return DatasetDict({**self.to_train_on(), **to_score})

    def _cut_differently(self) -> Dataset:
        """The training sentences whose words differ in raw text, in these words."""
        given, cut = self.given["train"], self.cut["train"]
        words = dict(zip(given["id"], given["tokens"], strict=True))  # of bad records, one of both may be dropped
        pairs = zip(cut["id"], cut["tokens"], strict=True)
        return cut.select([row for row, (name, tokens) in enumerate(pairs) if words.get(name) != tokens])


def read_splits(plan: TrainingPlan, base: BaseModel) -> Corpus:
    """Reads the data of a run, using the splitters of the model that it starts from."""
    _provide_demo_corpus(plan)
    words: str | dict[str, Any] | None = plan.model.word_splitter
    sentences: str | None = plan.model.sentence_splitter
    pos_size = plan.config.get("pos_embedding_size")
    if base.config is not None and base.processor is not None:
        words = words or base.processor.word_splitter
        sentences = sentences or base.processor.sentence_splitter
        pos_size = base.config.pos_embedding_size
    words, tokenizer = words or DEFAULT_WORD_SPLITTER, None
    if words == SUBWORDS:
        if base.name is None:
            raise ValueError(f"--word_splitter {SUBWORDS} needs a pretrained encoder (--model_name_or_path).")
        tokenizer = AutoTokenizer.from_pretrained(base.name, add_prefix_space=True, trust_remote_code=False)
    corpus = read_corpus(plan.data, make_word_splitter(words, tokenizer), bool(pos_size), sentences, plan.training.seed)
    _check_splits(plan.training, corpus.given)
    if not plan.training.do_train:  # else the model would need labels for the types of data that is not used
        corpus = corpus.change(lambda splits: DatasetDict({name: splits[name] for name in splits if name != "train"}))
    logger.info("Read %s.", ", ".join(f"{len(records):,} {split} sentences" for split, records in corpus.given.items()))
    if plan.training.do_train:
        logger.info("Words: %s (--words).", WORDS[corpus.words])
    return corpus


def _provide_demo_corpus(plan: TrainingPlan) -> None:
    """Writes the embedded corpus beside the model if the recipe is that of the demo, and no data is given."""
    data, folder = plan.data, Path(plan.training.output_dir, "corpus")
    if plan.recipe != recipe_library() / DEMO or data.train_file or data.validation_file or data.test_file:
        return
    if plan.training.should_save:
        write_demo_corpus(folder)
    logger.info("No data is given: the recipe %s trains on this package's synthetic corpus, in %s.", DEMO, folder)
    of_demo = {"train_file": str(folder), "dataset_name": DEMO_NAME, "language": "en"}
    for option, value in of_demo.items():
        if getattr(data, option) is None:
            setattr(data, option, value)
            plan.options[option] = value


def read_corpus(
    data: DataArguments,
    word_splitter: WordSplitter,
    reads_tags: bool,
    sentence_splitter: str | None = None,
    seed: int = 0,
) -> Corpus:
    """Reads the splits train, validation and test from the files of the options, each file once.

    The splitters are those of the model, and `reads_tags` says that it reads parts of speech, which belong to the words
    of the corpus; `seed` chooses the documents of `dev_share`.
    """
    of_splits = {"validation": data.validation_file, "test": data.test_file}
    paths: list[str | Mapping[str, str]] = [data.train_file] if data.train_file else []
    paths += [{split: file} for split, file in of_splits.items() if file]
    read = (read_parts(path, data.data_format, max_bad_records=data.max_bad_records) for path in paths)
    parts = [part for of_path in read for part in of_path]
    words = _choose_words(parts, data, reads_tags)
    tagger = None if data.pos_tagger is None else spacy_tagger(data.pos_tagger)

    def load(in_own_words: bool) -> DatasetDict:
        """The splits in the words of the corpus, where it has its own, or in those of raw text."""
        splits: dict[str, Dataset] = {}
        for part in parts:
            splits |= part.sentences(word_splitter, sentence_splitter, in_own_words)
        if tagger is not None:
            splits = {split: add_parts_of_speech(records, tagger) for split, records in splits.items()}
        return DatasetDict(splits)

    given = cut = load(in_own_words=True)
    if words != "corpus" and any(part.has_words for part in parts):
        cut = load(in_own_words=False)
    rows = given["train"]["entities"] if "train" in given else []
    types = {entity["type"] for entities in rows for entity in entities}
    corpus = Corpus(words, types, given, cut, {}, tagger)
    held_out: set[Any] = set()
    if data.dev_share:
        held_out = _choose_dev(given, data.dev_share, seed)
        corpus = corpus.change(partial(_hold_out, chosen=held_out))
    corpus = corpus.change(partial(_limit_splits, data=data))
    return replace(corpus, texts=_texts_to_score(parts, data, corpus.given, held_out))


def _choose_dev(splits: DatasetDict, share: float, seed: int) -> set[Any]:
    """The documents of the training data to validate on; of a single one, numbers of its sentences."""
    if "train" not in splits or "validation" in splits:
        raise ValueError("--dev_share needs training data; leave it out if there is validation data.")
    names = sorted({*splits["train"]["doc_id"]})
    unit, keys = ("documents", names) if len(names) > 1 else ("sentences", sorted({*splits["train"]["sent_id"]}))
    chosen = random.Random(seed).sample(keys, max(1, round(share * len(keys))))
    logger.info("Validation data: %d of %d training %s (--dev_share).", len(chosen), len(keys), unit)
    return {*chosen}


def _hold_out(splits: DatasetDict, chosen: set[Any]) -> DatasetDict:
    """The splits with the chosen documents of `train` in `validation`."""
    train, column = splits["train"], "doc_id" if any(isinstance(key, str) for key in chosen) else "sent_id"
    held = [row for row, key in enumerate(train[column]) if key in chosen]
    kept = [row for row, key in enumerate(train[column]) if key not in chosen]
    return DatasetDict({**splits, "train": train.select(kept), "validation": train.select(held)})


def _limit_splits(splits: DatasetDict, data: DataArguments) -> DatasetDict:
    """The splits with their first sentences only, as many as the options allow."""
    limited = DatasetDict(splits)
    for split, limit in _limits(data).items():
        if limit is not None and split in limited:
            limited[split] = limited[split].select(range(min(limit, len(limited[split]))))
    return limited


def _limits(data: DataArguments) -> dict[str, int | None]:
    return {"train": data.max_train_samples, "validation": data.max_eval_samples, "test": data.max_predict_samples}


def _texts_to_score(
    parts: Sequence[CorpusPart], data: DataArguments, limited: DatasetDict, held_out: set[Any]
) -> dict[str, list[Text]]:
    """The texts of the splits to score, of the last file with the split; none of a split that has words only."""
    found: dict[str, list[Text]] = {}
    for split in ("validation", "test"):
        if split not in limited:
            continue
        origin = "train" if held_out and split == "validation" else split
        part = [part for part in parts if origin in part.texts][-1]
        if not part.is_written:
            continue
        texts = part.texts[origin]
        found[split] = texts if origin == split else [text for text in texts if text["doc_id"] in held_out]
        limit, names = _limits(data)[split], limited[split]["doc_id"]
        if limit is not None and len(names) >= limit:
            complete = {*names} - {names[-1]}
            found[split] = [text for text in found[split] if text["doc_id"] in complete]
    return found


def _check_splits(training: NestedNERTrainingArguments, splits: DatasetDict) -> None:
    """Raises ValueError if a split to train or score on is missing."""
    if "train" not in splits and training.do_train:
        raise ValueError("There is no training data; give --train_file, or --no_do_train to score a trained model.")
    if "validation" not in splits and training.do_train and training.eval_strategy != "no":
        raise ValueError(
            "There is no validation data: give --validation_file, or --dev_share 0.1 to hold out a tenth of the "
            "training data (docs/corpora.md#dev-sets), or --eval_strategy no."
        )
    if "validation" not in splits and not training.do_train and training.do_eval:
        raise ValueError("There is no validation data to score; give --validation_file, or add --no_do_eval.")
    if "test" not in splits and training.do_predict:
        raise ValueError("There is no test data to score (--do_predict); give --test_file.")


def _choose_words(parts: Sequence[CorpusPart], data: DataArguments, reads_tags: bool) -> str:
    """Resolves `--words auto` for these files."""
    if not any(part.has_words for part in parts):
        return "text"
    if data.words != "auto":
        return data.words
    if reads_tags and data.pos_tagger is None:
        logger.info("Words: those of the corpus, which has parts of speech. For raw text, train with --pos_tagger.")
        return "corpus"
    return "text" if all(part.is_written for part in parts) else "both"
