"""The start of a run: its corpus, in which words it is read, and a model, new or trained, with its processor.

A corpus may split words in its own way (GENIA at the boundaries of its entities: `CD28 | -mediated`). A model that is
trained on these words alone is much worse on raw text, whose words end elsewhere. So a model is trained on the words of
raw text if the corpus has its text, and scored on both.

`run.py` carries out a whole run; [`start_from_recipe`] hands model and processor to a trainer in Python.
"""

import logging
import os
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import torch
from datasets import Dataset, DatasetDict, concatenate_datasets
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PretrainedConfig, PreTrainedTokenizerFast, set_seed
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_NAME

from ..data import Text, add_context
from ..data.collator import Windows, spans_of
from ..data.loading import CorpusPart, read_parts
from ..data.records import as_dataset, entity_types, repeated_sentences
from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import MODEL_OPTIONS, ProcessorOptions, options_of
from ..model.processing_triaffine import VOCABULARY_PARTS, TriaffineProcessor, beginning
from ..model.text_triaffine import composed, word_splitter
from ..new_model import match_low_rank_start, number_names
from .new_labels import extend_labels
from .options import DATA, OWN_OPTIONS, SCORES, RunOptions
from .plan import NestedNERTrainingArguments, TrainingPlan, make_plan
from .word_vectors import read_word_vectors, vectors_of

logger = logging.getLogger(__name__)

SPECIAL_TOKENS = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
# Options of `triaffine-ner train` that `start_from_recipe` does not take.
OF_A_RUN = {"resume_from_checkpoint", "keep_labels", "teacher", "do_predict"} | {
    name
    for name, option in options_of(RunOptions).items()
    if option.section in (DATA, SCORES) and not name.endswith("_splitter")
}


@dataclass(frozen=True)
class BaseModel:
    """What a run starts from: a trained model has both fields, an encoder the processor, a new encoder neither."""

    config: TriaffineConfig | None = None
    processor: TriaffineProcessor | None = None


@dataclass(frozen=True)
class Corpus:
    """The splits of a run."""

    words: str  # to train on: those of the "corpus", those of raw "text", or "both"
    types: set[str]  # of entities in the training data, before its sentences are limited
    given: DatasetDict  # in the words of the corpus, on which the model is scored
    # For training and for the choice of the best checkpoint. With "both", training sentences whose words differ in raw
    # text come twice; validation is on raw text.
    to_train_on: DatasetDict
    texts: dict[str, list[Text]]  # of each split to score that has its text


def start_from_recipe(
    recipe: str | PathLike[str], corpus: Mapping[str, Dataset], output_dir: str | PathLike[str], **options: Any
) -> tuple[TriaffineForNestedNER, TriaffineProcessor, NestedNERTrainingArguments]:
    """Returns what a [`NestedNERTrainer`] needs to train a new model as a recipe says.

    Args:
        recipe: the name of a recipe of this package ("genia-minilm"), or the folder of another.
        corpus: data sets in the form of [`load_nested_ner`]; "train" decides on labels and vocabularies. A recipe with
            context needs data sets that went through `add_context`.
        output_dir: folder for checkpoints and the finished model.
        options: replace those of the recipe, None by the default: fields of [`TriaffineConfig`] and of
            [`NestedNERTrainingArguments`], and `model_name_or_path`, the encoder or a trained model.

    Returns:
        The model, its processor and the training arguments.

    Raises:
        ValueError: there is no such recipe or option, its value is invalid, it applies to whole runs only, `corpus`
            has another form, or there are no entities to learn.

    Examples:
        >>> from modeling_triaffine import load_nested_ner, start_from_recipe
        >>> corpus = load_nested_ner("outputs/demo/corpus")
        >>> model, processor, arguments = start_from_recipe("demo", corpus, "outputs/mine", num_train_epochs=2)
        >>> arguments.num_train_epochs
        2.0
    """
    for name in options.keys() & OF_A_RUN:
        raise ValueError(f"start_from_recipe does not take {name!r}: it is for `trainer` or `triaffine-ner train`.")
    if not isinstance(corpus, Mapping) or "train" not in corpus:
        raise ValueError("start_from_recipe: `corpus` has no split 'train'. Give a DatasetDict of load_nested_ner.")
    plan = make_plan({"recipe": recipe, "output_dir": output_dir, **options})
    splits = DatasetDict({name: as_dataset(records, f"the split {name!r}") for name, records in corpus.items()})
    types = {name: entity_types(records, f"the split {name!r}") for name, records in splits.items()}
    model, processor = start_model(plan, find_base_model(plan), splits, types["train"])
    return model, processor, plan.training


def find_base_model(plan: TrainingPlan) -> BaseModel:
    """Finds what the run starts from, without loading weights."""
    name = plan.training.resume_from_checkpoint or plan.model_name_or_path
    if name is None and "encoder_config" not in plan.config:
        raise ValueError("There is no model to start from: give --model_name_or_path or a --recipe.")
    base = BaseModel()
    if name and os.path.isdir(name):
        files = {file.removesuffix(".index.json") for file in os.listdir(name)}
        if CONFIG_NAME not in files or files.isdisjoint((SAFE_WEIGHTS_NAME, WEIGHTS_NAME)):
            missing = SAFE_WEIGHTS_NAME if CONFIG_NAME in files else CONFIG_NAME
            raise FileNotFoundError(f"{name} has no {missing}; give the folder of an encoder or of a trained model.")
    if name and PretrainedConfig.get_config_dict(name)[0].get("model_type") == TriaffineConfig.model_type:
        base = BaseModel(TriaffineConfig.from_pretrained(name), TriaffineProcessor.from_pretrained(name))
    elif name:
        base = BaseModel(processor=TriaffineProcessor.from_encoder(name))
    if plan.keep_labels and not (base.config and plan.model_name_or_path):
        raise ValueError("--keep_labels is for training a trained model further; give it as --model_name_or_path.")
    if plan.keep_labels and plan.teacher:
        raise ValueError("--keep_labels and --teacher exclude each other; leave out one of the two.")
    # What the data decided on when the model was built.
    of_data = {"max_span_width"} if plan.learn_span_width and not plan.config.get("max_span_width") else set()
    of_data |= {"word_embedding_size"} if plan.word_vectors and not plan.config.get("word_embedding_size") else set()
    for option in MODEL_OPTIONS.keys() & plan.config.keys() - plan.of_recipe - of_data if base.config else ():
        value, trained = plan.config[option], getattr(base.config, option)
        if trained != value:
            raise ValueError(f"{option} is {value!r}, but {name} was trained with {trained!r}; leave it out.")
    if plan.word_vectors and base.config and not base.config.word_embedding_size:
        raise ValueError(f"--word_vectors are for a new model, and {name} was trained without any; leave them out.")
    return base


# ---- The corpus ----


def read_corpus(plan: TrainingPlan, base: BaseModel) -> Corpus:
    """Reads the splits train, validation and test of a run, each file once, as the model to start from reads texts."""
    parts: list[CorpusPart] = []
    for split, file in (("", plan.train_file), ("validation", plan.validation_file), ("test", plan.test_file)):
        if file:
            path: Any = {split: file} if split else file
            parts += read_parts(path, plan.data_format, max_bad_records=plan.max_bad_records)
    reads_tags, context, max_subwords = (
        getattr(base.config, name) if base.config else plan.config.get(name, MODEL_OPTIONS[name].default)
        for name in ("pos_embedding_size", "context", "max_subwords")
    )
    words = _choose_words(plan.words, parts, bool(reads_tags))
    forms = (True, False) if words != "corpus" and any(part.has_words for part in parts) else (True,)
    read = [_sentences(plan, base, parts, in_own_words) for in_own_words in forms]
    if "train" not in read[0]:
        raise ValueError("There is no training data; give --train_file.")
    types = {*count_types(read[0]["train"])}
    held_out = _choose_dev(read[0], plan.dev_share, plan.training.seed) if plan.dev_share else set[Any]()
    divided = [_hold_out(splits, held_out, plan.max_train_samples) for splits in read]
    given, *raw = (add_context(splits, context, max_subwords) for splits in divided)
    if "validation" not in given and plan.training.eval_strategy != "no":
        raise ValueError("There is no validation data: --dev_share 0.1 holds out a tenth (docs/corpora.md#dev-sets).")
    if "validation" not in given and plan.training.calibrate_threshold:
        raise ValueError("There is no validation data to calibrate on (--calibrate_threshold); give --validation_file.")
    if "test" not in given and plan.training.do_predict:
        raise ValueError("There is no test data to score (--do_predict); give --test_file.")
    to_train_on = raw[0] if raw else given
    if words == "both":
        to_train_on["train"] = _in_both_words(given["train"], to_train_on["train"])
    logger.info("Read %s.", ", ".join(f"{len(records):,} {split} sentences" for split, records in given.items()))
    logger.info("Words: %s (--words).", OWN_OPTIONS["words"].meanings[words])
    return Corpus(words, types, given, to_train_on, _texts_to_score(parts, given, held_out))


def _choose_words(wanted: str, parts: Sequence[CorpusPart], reads_tags: bool) -> str:
    """Returns the words to train on: "text", "both" or "corpus"; a corpus without words of its own has only text."""
    if not any(part.has_words for part in parts):
        return "text"
    if wanted != "auto":
        return wanted
    if reads_tags:
        logger.info("Words: those of the corpus, to which its parts of speech belong.")
        return "corpus"
    return "text" if all(part.is_written for part in parts) else "both"


def _sentences(plan: TrainingPlan, base: BaseModel, parts: Iterable[CorpusPart], in_own_words: bool) -> dict[str, Any]:
    """The splits in the words of the corpus, where it has its own, or in those of raw text."""
    reader: Any = base.processor or ProcessorOptions  # whose fields are its defaults
    split_words = word_splitter(plan.word_splitter or reader.word_splitter)
    splits: dict[str, Any] = {}
    for part in parts:
        splits |= part.sentences(split_words, plan.sentence_splitter or reader.sentence_splitter, in_own_words)
    return splits


def _hold_out(splits: Mapping[str, Any], held_out: Collection[Any], most: int | None) -> DatasetDict:
    """Moves training sentences (`_choose_dev`) to validation; keeps at most `most` of the others to train on."""
    train, others = splits["train"], {}
    if held_out:
        names = zip(train["doc_id"], train["sent_id"], strict=True)
        is_held = [document in held_out or sentence in held_out for document, sentence in names]
        others = {"validation": train.select([row for row, held in enumerate(is_held) if held])}
        train = train.select([row for row, held in enumerate(is_held) if not held])
    train = train if most is None else train.take(min(most, len(train)))
    return DatasetDict({**splits, **others, "train": train})


def _in_both_words(own: Dataset, raw: Dataset) -> Dataset:
    """The sentences in the words of the corpus, then those of raw text whose words differ."""
    known = {(name, *tokens) for name, tokens in zip(own["id"], own["tokens"], strict=True)}
    pairs = zip(raw["id"], raw["tokens"], strict=True)
    others = raw.select([row for row, (name, tokens) in enumerate(pairs) if (name, *tokens) not in known])
    return concatenate_datasets([own, others])


def _texts_to_score(parts: Sequence[CorpusPart], given: DatasetDict, held_out: set[Any]) -> dict[str, list[Text]]:
    """Returns the texts of the splits to score, of the last part that has the split; none if it has words only."""
    found: dict[str, list[Text]] = {}
    for split in sorted(given.keys() & {"validation", "test"}):
        origin = "train" if held_out and split == "validation" else split
        *_, part = (part for part in parts if origin in part.texts)
        if part.is_written:
            found[split] = [text for text in part.texts[origin] if origin == split or text["doc_id"] in held_out]
    return found


def _choose_dev(splits: Mapping[str, Any], share: float, seed: int) -> set[Any]:
    """Returns the names of the training documents to validate on; of a single document, numbers of its sentences."""
    if "validation" in splits:
        raise ValueError("There is validation data; leave out --dev_share.")
    # Texts of one document, such as its pages, are numbered after its name: "report", "report#2".
    names = {name: name.rsplit("#", 1)[0] for name in sorted({*splits["train"]["doc_id"]})}
    if len(documents := sorted({*names.values()})) == 1:
        names, documents = dict(zip(names, names, strict=True)), [*names]
    unit, keys = ("documents", documents) if len(names) > 1 else ("sentences", sorted({*splits["train"]["sent_id"]}))
    chosen: set[Any] = {*random.Random(seed).sample(keys, max(1, round(share * len(keys))))}
    logger.info("Validation data: %d of %d training %s (--dev_share).", len(chosen), len(keys), unit)
    return {name for name in names if names[name] in chosen} if len(names) > 1 else chosen


def count_types(records: Dataset) -> Counter[str]:
    """The number of entities of each type."""
    return Counter(entity["type"] for entities in records["entities"] for entity in entities)


# ---- The model and its processor ----


def start_model(
    plan: TrainingPlan, base: BaseModel, dataset: DatasetDict, types: Collection[str]
) -> tuple[TriaffineForNestedNER, TriaffineProcessor]:
    """Returns the model that the run starts with, new or trained, and its processor.

    Labels are the `types` of the training data in alphabetical order, then None. Logs entities that the model cannot
    find, and how many sentences of the other splits are training sentences.
    """
    set_seed(plan.training.seed)
    if not types:
        raise ValueError("The training data has no entities, so there is nothing to learn. Check --train_file.")
    labels = [*sorted(types), NONE_LABEL]
    if base.config is not None:
        model, processor = _load_trained(plan, base, dataset, labels)
    else:
        model, processor = _start_new(plan, base.processor, dataset, labels)
    processor.word_splitter = plan.word_splitter or processor.word_splitter
    processor.sentence_splitter = plan.sentence_splitter or processor.sentence_splitter
    if auxiliary := model.config.auxiliary_labels:
        counts = count_types(dataset["train"])
        named = ", ".join(f"{name} ({counts[name]} in the training data)" for name in auxiliary)
        logger.info("Auxiliary labels, which are trained and never predicted: %s.", named)
    _warn_of_missed_entities(model.config, processor, dataset)
    if repeated := repeated_sentences(dataset):
        logger.info("%s", repeated.capitalize())
    return model, processor


def _load_trained(
    plan: TrainingPlan, base: BaseModel, dataset: DatasetDict, labels: list[str]
) -> tuple[TriaffineForNestedNER, Any]:
    """Loads a trained model, with new labels if the data has any; a checkpoint to resume from has those of its run."""
    config: Any = base.config
    if plan.training.resume_from_checkpoint:
        return TriaffineForNestedNER(config), base.processor  # the Trainer loads its weights
    model = TriaffineForNestedNER.from_pretrained(plan.model_name_or_path, config=config, dtype=torch.float32)
    if gone := [name for name in model.config.entity_labels if name not in labels]:
        fate = "learned from the model's own predictions" if plan.keep_labels else "forgotten (see --keep_labels)"
        logger.warning("The training data has no entity of the model's labels %s: these are %s.", ", ".join(gone), fate)
    known: Any = model.config.trained_labels
    new = [name for name in labels[:-1] if name not in known]
    if new:
        logger.info("New labels, in addition to the model's %s: %s.", ", ".join(known), ", ".join(new))
    new += _unseen_types(dataset, [*known, *new])
    return extend_labels(model, new) if new else model, base.processor


def _start_new(
    plan: TrainingPlan, processor: Any, dataset: DatasetDict, labels: list[str]
) -> tuple[TriaffineForNestedNER, Any]:
    """Builds a model on a pretrained encoder, or on a new one as the recipe describes it."""
    train, encoder = dataset["train"], plan.model_name_or_path
    auxiliary = plan.config.get("auxiliary_labels") or []
    names = {*labels, *_unseen_types(dataset, labels)} - {NONE_LABEL, *auxiliary}
    fields = {"id2label": dict(enumerate([*sorted(names), *auxiliary, NONE_LABEL])), **plan.config}
    encoder_config = fields.pop("encoder_config", None)
    if encoder is None:
        tokenizer = learn_tokenizer(train["tokens"], plan.tokenizer_vocab_size)
        processor = TriaffineProcessor(tokenizer)
        encoder_config = {**encoder_config, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    for name in fields.keys() & {"context", "max_subwords"}:
        setattr(processor, name, fields[name])
    if plan.learn_span_width and fields.get("max_span_width") is None:
        widths = (entity["end"] - entity["start"] for of_sentence in train["entities"] for entity in of_sentence)
        fields["max_span_width"] = max(widths, default=None)
    vectors = {}
    if plan.word_vectors is not None:
        words = {composed(word) for split in dataset.values() for tokens in split["tokens"] for word in tokens}
        vectors = read_word_vectors(plan.word_vectors, words, fields.get("word_embedding_size") or None)
        fields["word_embedding_size"] = len(next(iter(vectors.values())))
    if parts := [part for part, name in VOCABULARY_PARTS.items() if fields.get(f"{name}_embedding_size")]:
        processor.build_vocabularies(train, parts)
    if vectors:  # only words with a vector are known
        processor.vocabularies["words"] = number_names(vectors)
    for part in parts:
        fields[f"{VOCABULARY_PARTS[part]}_vocab_size"] = len(processor.vocabularies[part])
    if encoder is not None:
        model = TriaffineForNestedNER.from_encoder(encoder, **fields)
    else:
        model = TriaffineForNestedNER(TriaffineConfig(encoder_config=encoder_config, **fields))
        match_low_rank_start(model)
    if vectors:
        model.words.word_embedding.weight.data.copy_(vectors_of(processor.vocabularies["words"], vectors))
    return model, processor


def _unseen_types(dataset: DatasetDict, known: Collection[str]) -> list[str]:
    """Returns, and warns of, the entity types that are not `known`, because only the data to score has them."""
    found: set[str] = set()
    for split, records in dataset.items():
        types = count_types(records)
        if unseen := sorted(types.keys() - {*known}):
            named = ", ".join(f"{name} ({types[name]})" for name in unseen)
            logger.warning("The %s data has types of entities that are not learned, but missed: %s.", split, named)
        found |= {*unseen}
    return sorted(found)


def learn_tokenizer(sentences: Iterable[list[str]], vocab_size: int) -> PreTrainedTokenizerFast:
    """Trains a byte-pair tokenizer for an encoder from scratch; the same sentences give the same tokenizer.

    (WordPiece would not: its trainer numbers "##" pieces in an order that changes between calls.) `vocab_size` includes
    the special tokens and all 256 bytes, so that no word is unknown. Words are those that the processor reads.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(([beginning(word) for word in words] for words in sentences), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL_TOKENS)


def _warn_of_missed_entities(config: TriaffineConfig, processor: TriaffineProcessor, dataset: DatasetDict) -> None:
    """Warns of entities that the model cannot find, whatever it learns, by reason."""
    most, width = config.max_candidates, config.max_span_width
    for split, rows in dataset.items():
        records = [*rows]
        spans, windows = [spans_of(record) for record in records], Windows(records, processor)
        typed = [{(span["start"], span["end"], span["type"]) for span in record["entities"]} for record in records]
        second = 0 if config.multi_label else sum(map(len, typed)) - sum(map(len, spans))
        beyond = sum(max(0, len(spans_of(window)) - most) for window in windows) if config.cross_span else 0
        missed = sum(map(len, spans)) - sum(map(len, windows.join_spans(map(spans_of, windows))))
        wide = sum(width is not None and end - start > width for of_sentence in spans for start, end in of_sentence)
        reasons = {
            "on the span of another entity, which --multi_label true allows": second,
            f"beyond the {most} candidates of a sentence (--max_candidates)": beyond,
            f"of more than {width} words (--max_span_width)": wide,
            "in no window of a long sentence": missed,
        }
        if found := [f"{reason}: {count}" for reason, count in reasons.items() if count]:
            logger.warning("Entities of the %s data that cannot be found: %s", split, "; ".join(found))
