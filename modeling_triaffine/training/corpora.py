"""The data of a run: its files, the number of its sentences, and which words they are split into.

A corpus may split words in its own way (GENIA at the boundaries of its entities: `CD28 | -mediated`), and a model
trained on these words only is silently much worse on raw text, which its own word splitter splits. So a model is
trained on the words of raw text if the corpus has its text, and scored on both.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import DatasetDict, concatenate_datasets
from transformers import AutoTokenizer

from ..data import Text, WordSplitter, add_context
from ..data.demo import write_demo_corpus
from ..data.loading import CorpusPart, read_parts
from ..data.spacy_pipelines import add_parts_of_speech, spacy_tagger
from ..model.options_triaffine import MODEL_OPTIONS
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
        to_train_on: the splits for training and for the choice of the best checkpoint. With "both", training sentences
            whose words differ in raw text come twice; validation is on raw text.
        texts: the texts of each split to score that has its text, as far as they are complete within its limit.
        tagger: the one that tagged the sentences without parts of speech, if any was to.
    """

    words: str
    types: set[str]
    given: DatasetDict
    to_train_on: DatasetDict
    texts: dict[str, list[Text]]
    tagger: PosTagger | None = None


def read_splits(plan: TrainingPlan, base: BaseModel) -> Corpus:
    """Reads the data of a run, as the model that it starts from reads texts."""
    _provide_demo_corpus(plan)
    config, training = base.config, plan.training
    read_by = {
        name: plan.config.get(name, MODEL_OPTIONS[name].default) if config is None else getattr(config, name)
        for name in ("pos_embedding_size", "context", "max_subwords")
    }
    own: Any = base.processor
    words: Any = plan.model.word_splitter or (own and own.word_splitter) or DEFAULT_WORD_SPLITTER
    tokenizer = None
    if words == SUBWORDS:
        if base.name is None:
            raise ValueError(f"--word_splitter {SUBWORDS} needs a pretrained encoder (--model_name_or_path).")
        tokenizer = AutoTokenizer.from_pretrained(base.name, add_prefix_space=True, trust_remote_code=False)
    corpus = read_corpus(
        plan.data,
        make_word_splitter(words, tokenizer),
        bool(read_by["pos_embedding_size"]),
        plan.model.sentence_splitter or (own and own.sentence_splitter),
        (read_by["context"], read_by["max_subwords"]),
        training.seed,
        training.do_train,
    )
    _check_splits(training, corpus.given)
    logger.info("Read %s.", ", ".join(f"{len(records):,} {split} sentences" for split, records in corpus.given.items()))
    if training.do_train:
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
    context: tuple[str, int] = ("none", 0),
    seed: int = 0,
    do_train: bool = True,
) -> Corpus:
    """Reads the splits train, validation and test from the files of the options, each file once.

    Splitters, `context` and its words are those of the model, and `reads_tags` says that it reads parts of speech,
    which belong to the words of the corpus; `seed` chooses the documents of `dev_share`. Without `do_train`, there is
    no split `train`: the model would need labels for types of data that is not used.
    """
    of_splits = {"validation": data.validation_file, "test": data.test_file}
    paths: list[str | Mapping[str, str]] = [data.train_file] if data.train_file else []
    paths += [{split: file} for split, file in of_splits.items() if file]
    read = (read_parts(path, data.data_format, max_bad_records=data.max_bad_records) for path in paths)
    parts = [part for of_path in read for part in of_path]
    words = _choose_words(parts, data, reads_tags)
    tagger = None if data.pos_tagger is None else spacy_tagger(data.pos_tagger)
    limits = {"train": data.max_train_samples, "validation": data.max_eval_samples, "test": data.max_predict_samples}
    types: set[str] = set()
    held_out: set[Any] = set()

    def load(in_own_words: bool) -> DatasetDict:
        """The splits in the words of the corpus, where it has its own, or in those of raw text."""
        splits: dict[str, Any] = {}
        for part in parts:
            splits |= part.sentences(word_splitter, sentence_splitter, in_own_words)
        if tagger is not None:
            splits = {split: add_parts_of_speech(records, tagger) for split, records in splits.items()}
        if in_own_words and "train" in splits:
            types.update(entity["type"] for entities in splits["train"]["entities"] for entity in entities)
        if in_own_words and data.dev_share:
            held_out.update(_choose_dev(splits, data.dev_share, seed))
        if held_out:
            train = splits["train"]
            names = zip(train["doc_id"], train["sent_id"], strict=True)
            is_held = [not held_out.isdisjoint(of_sentence) for of_sentence in names]
            splits["validation"] = train.select([row for row, held in enumerate(is_held) if held])
            splits["train"] = train.select([row for row, held in enumerate(is_held) if not held])
        if not do_train:
            splits.pop("train", None)
        limited = {
            split: records.select(range(min(limits[split] or len(records), len(records))))
            for split, records in splits.items()
        }
        return add_context(DatasetDict(limited), *context)

    given = to_train_on = load(in_own_words=True)
    if words != "corpus" and any(part.has_words for part in parts):
        to_train_on = load(in_own_words=False)
    if words == "both" and "train" in given:
        own, cut = given["train"], to_train_on["train"]
        words_of = dict(zip(own["id"], own["tokens"], strict=True))  # of bad records, one of both may be dropped
        pairs = zip(cut["id"], cut["tokens"], strict=True)
        others = cut.select([row for row, (name, tokens) in enumerate(pairs) if words_of.get(name) != tokens])
        to_train_on["train"] = concatenate_datasets([own, others])
    return Corpus(words, types, given, to_train_on, _texts_to_score(parts, given, limits, held_out), tagger)


def _texts_to_score(
    parts: Sequence[CorpusPart], given: DatasetDict, limits: Mapping[str, int | None], held_out: set[Any]
) -> dict[str, list[Text]]:
    """The texts of the splits to score, of the last part with the split; none of a split that has words only."""
    found: dict[str, list[Text]] = {}
    for split in ("validation", "test"):
        origin = "train" if held_out and split == "validation" else split
        part = [part for part in parts if origin in part.texts][-1] if split in given else None
        if part is None or not part.is_written:
            continue
        found[split] = [text for text in part.texts[origin] if origin == split or text["doc_id"] in held_out]
        limit, names = limits[split], given[split]["doc_id"]
        if limit is not None and len(names) >= limit:
            complete = {*names} - {names[-1]}
            found[split] = [text for text in found[split] if text["doc_id"] in complete]
    return found


def _choose_dev(splits: Mapping[str, Any], share: float, seed: int) -> list[Any]:
    """The documents of the training data to validate on; of a single one, numbers of its sentences."""
    if "train" not in splits or "validation" in splits:
        raise ValueError("--dev_share needs training data; leave it out if there is validation data.")
    # Texts of one document, such as its pages, are numbered after its name: "report", "report#2".
    names = {name: name.rsplit("#", 1)[0] for name in sorted({*splits["train"]["doc_id"]})}
    if len(documents := sorted({*names.values()})) == 1:
        names, documents = dict(zip(names, names, strict=True)), [*names]
    unit, keys = ("documents", documents) if len(names) > 1 else ("sentences", sorted({*splits["train"]["sent_id"]}))
    chosen = random.Random(seed).sample(keys, max(1, round(share * len(keys))))
    logger.info("Validation data: %d of %d training %s (--dev_share).", len(chosen), len(keys), unit)
    return [name for name in names if names[name] in chosen] if len(names) > 1 else chosen


def _check_splits(training: NestedNERTrainingArguments, splits: DatasetDict) -> None:
    """Raises ValueError if a split to train or score on is missing."""
    if "train" not in splits and training.do_train:
        raise ValueError("There is no training data; give --train_file, or --no_do_train to score a trained model.")
    if "validation" not in splits and training.do_train and training.eval_strategy != "no":
        raise ValueError("There is no validation data: --dev_share 0.1 holds out a tenth (docs/corpora.md#dev-sets).")
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
