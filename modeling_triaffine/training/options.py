"""The options of a run, each declared once, and how their values are read. Imports neither torch nor transformers.

`plan.py` makes a subclass of transformers' `TrainingArguments` of them; the options of the model are in
`model/options_triaffine.py`. Help, completion, command line, recipes and cards read the declarations.
"""

import contextlib
import math
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from ..model.options_triaffine import MODEL_OPTIONS, PROCESSOR_OPTIONS, Option, option, options_of

START, DATA, TRAINING, SCORES = "Start", "Data", "Training", "Scores and card"
MODEL, RARE = "Model: the fields of TriaffineConfig", "Rarely needed"
INHERITED = "Inherited from transformers' TrainingArguments"
SECTIONS = (START, DATA, TRAINING, SCORES, MODEL, RARE, INHERITED)
LATEST = "latest"  # --resume_from_checkpoint: the latest complete checkpoint in the output folder
DERIVED: Any = None  # the default of options whose values are derived from others
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "f", "n", "0"), False),
}

# `option` with a section of the help, and with the rule by which model cards have it.
_start = partial(option, section=START)
_scores = partial(option, section=SCORES)
_rare = partial(option, section=RARE)
_data = partial(option, section=DATA)
_in_card = partial(option, in_card="always")
_model = partial(option, section=MODEL)
_not_in_card = partial(option, in_card="never")
_data_not_in_card = partial(option, in_card="never", section=DATA)
_card_field = partial(option, None, in_card="never", section=SCORES)
_data_file = partial(option, None, is_path=True, in_card="never", metavar="PATH", section=DATA)


def _splitter(name: str, more: str = "") -> Any:
    of_model = PROCESSOR_OPTIONS[name]
    unset = f"{of_model.default}, or as in the trained model"
    return option(None, f"{of_model.doc}{more}", of_model.meanings, metavar=of_model.metavar, section=DATA, unset=unset)


def _rate(default: float, of: str) -> Any:
    return _in_card(default, f"Learning rate of {of}", least=0, below=math.inf, metavar="RATE")


@dataclass
class RunOptions:
    """The start of a run, and the data to train, validate and test on."""

    recipe: str | None = _start(
        None, "Recipe of the package (demo, genia-minilm, …), or a recipe's folder", metavar="NAME", in_card="never"
    )
    model_name_or_path: str | None = _start(
        None,
        "Pretrained encoder, or a trained model to train further (new labels are added): a folder or a name on the Hub",
        unset="that of the recipe, or the encoder in its config.json, from scratch, with a tokenizer of its own",
        metavar="MODEL",
        is_path=True,
        in_card="never",
    )
    keep_labels: bool = _start(
        False, "When you train a model further, keep those of its labels that the training data does not annotate"
    )
    teacher: str | None = _start(
        None,
        "Trained model with the same labels, such as of another seed; half of each target is its probability",
        metavar="MODEL",
        is_path=True,
    )
    word_splitter: str | None = _splitter("word_splitter")
    sentence_splitter: str | None = _splitter(
        "sentence_splitter", " in the texts that the model reads and in the corpus, unless it marks sentences"
    )
    learn_span_width: bool = _model(
        False, "Score no span wider than the widest entity in the training data: faster; wider entities are never found"
    )
    word_vectors: str | None = _model(
        None,
        "Static word vectors for a new model: fastText (.vec), word2vec (text or binary) or GloVe",
        metavar="FILE",
        is_path=True,
    )
    tokenizer_vocab_size: int = _rare(
        8000,
        "Vocabulary size of a tokenizer that is learned from the training data",
        least=261,  # the special tokens and all bytes
    )
    license: str | None = _card_field("License in the model card: the Hub's identifier, such as apache-2.0")
    train_file: str | None = _data_file("Corpus: a file, or a folder with train, dev and test")
    validation_file: str | None = _data_file("Validation data", unset="that in --train_file")
    test_file: str | None = _data_file("Test data", unset="that in --train_file")
    dev_share: float = _data(
        0.0, "Share of the training documents to validate on, such as 0.1", least=0, below=1, metavar="SHARE"
    )
    data_format: str | None = _data_not_in_card(
        None,
        "Format of the corpus, as `triaffine-ner convert --help` lists them",
        unset="recognized by name and content",
        metavar="FORMAT",
    )
    max_bad_records: int = _data_not_in_card(
        0,
        "Drop and name up to N records of each split that cannot be read; 0: the first is an error",
        least=0,
        metavar="N",
    )
    words: str = _data(
        "auto",
        "Words to train on. Entities are aligned by characters, and lost entities are counted",
        {
            "auto": "corpus if the model reads the corpus's parts of speech, else text if the corpus has its text, "
            "else both",
            "corpus": "those of the corpus",
            "text": "those of raw text",
            "both": "those of the corpus and those of raw text; sentences whose words differ come twice",
        },
        metavar="WHICH",
    )
    flat_annotation: str | None = _data(
        None,
        "Spans to leave out of the loss, so that nested entities can be found although the data has none",
        {"outermost": "those inside an entity, if only outermost entities are annotated"},
        unset="none; all entities are annotated",
        metavar="WHICH",
    )
    max_train_samples: int | None = _data(None, "Train on the first N sentences only", least=1)
    dataset_name: str | None = _card_field("Name of the data in the model card: an id on the Hub, or a title")
    language: str | None = _card_field("Language of the data in the model card, such as en")
    card_examples: int = _scores(
        3, "Number of validation sentences in the model card; 0 if the corpus's text must not be published", least=0
    )


@dataclass
class TrainingOptions:
    """The fields of transformers' `TrainingArguments` that people set here, or that have another default or meaning."""

    output_dir: str = _not_in_card(
        "outputs", "Folder for checkpoints and the final model", metavar="FOLDER", required=True, section=START
    )
    resume_from_checkpoint: str | None = _not_in_card(
        None,
        f"Resume from this checkpoint; without PATH or with {LATEST!r}, from the latest in --output_dir, if any",
        metavar="PATH",
        bare=LATEST,
        section=START,
    )
    do_predict: bool = _data(False, "Also score the test data, and save the predictions")
    num_train_epochs: float = _in_card(15.0, "Passes over the training data")
    min_steps: int = option(
        0,
        "Minimum number of updates: small data gets more epochs, unless --num_train_epochs or --max_steps is given",
        least=0,
    )
    per_device_train_batch_size: int = _in_card(8, "Sentences in a batch of each process", least=1)
    gradient_accumulation_steps: int = _in_card(1, "Batches in one update of the weights", least=1)
    max_subwords_per_batch: int | None = _in_card(
        None, "Maximum sub-words in a batch of each process, padding included", least=1, unset="a number of sentences"
    )
    encoder_learning_rate: float = _rate(3e-5, "the encoder")
    embeddings_learning_rate: float = _rate(5e-4, "word, part-of-speech and character embeddings and of the BiLSTM")
    learning_rate: float = _rate(3e-5, "everything else, the triaffine head")
    lr_scheduler_type: str = _in_card("linear", "Schedule of the learning rates, as in transformers", metavar="NAME")
    warmup_steps: float = _in_card(0, "Updates of linear warm-up or, below 1, their fraction of all updates", least=0)
    weight_decay: float = _in_card(
        0.01, "Decoupled weight decay; none on biases, norms and the label bias", least=0, metavar="RATE"
    )
    ema_decay: float | None = option(
        None,
        "Score and save an average of the weights with this decay, such as 0.99",
        least=0,
        below=1,
        metavar="DECAY",
    )
    max_grad_norm: float = _in_card(0.1, "Clip gradients to this norm; 0: never", least=0, metavar="NORM")
    seed: int = _in_card(42, "Seed of all random numbers", least=0)
    # The card has the precision and the hardware.
    bf16: bool = _not_in_card(False, "Mixed precision on a GPU, or a CPU that multiplies bfloat16 faster")
    use_cpu: bool = _not_in_card(False, "Train without a GPU")
    eval_strategy: str = _scores(
        "epoch", "When to score the validation data", dict.fromkeys(("epoch", "steps", "no"), ""), metavar="WHEN"
    )
    save_strategy: str = _scores(
        DERIVED,
        "When to save a checkpoint, in addition to one at least every five minutes",
        dict.fromkeys(("no", "steps", "epoch", "best"), ""),
        metavar="WHEN",
        unset="as --eval_strategy, or each epoch without evaluation",
    )
    load_best_model_at_end: bool = _scores(
        DERIVED,
        "End with the checkpoint that has the best --metric_for_best_model, not with the last one",
        unset="true if every checkpoint is scored",
    )
    metric_for_best_model: str | None = _scores(
        "f1",
        "Validation metric that determines the best checkpoint, such as f1, precision, nested_f1, f1_LABEL or loss",
        metavar="NAME",
    )
    calibrate_threshold: bool = _scores(
        False, "At the end, choose a temperature and one threshold for all labels on the validation data"
    )
    push_to_hub: bool = _scores(False, "Publish the final model")
    hub_private_repo: bool | None = _scores(True, "Make a new repository private; off with --no_hub_private_repo")
    do_train: bool = _rare(True, "Must be true; `triaffine-ner evaluate` scores a trained model")
    do_eval: bool = _rare(True, "Score the final model on the validation data; off with --no_do_eval")
    save_steps: float = _rare(
        DERIVED,
        "Updates between two checkpoints with --save_strategy steps",
        unset="those between two evaluations (--eval_steps), or 500",
        metavar="N",
    )
    save_total_limit: int | None = _rare(
        1, "Number of checkpoints to keep; the best one stays in any case, the latest until training ends", least=1
    )
    logging_steps: float = _rare(50, "Updates between two logs of loss and learning rate", metavar="N")
    train_sampling_strategy: str = _rare(
        "group_by_length",
        "How batches are made",
        {"group_by_length": "of sentences of similar length", "random": "", "sequential": "in the order of the data"},
        metavar="WAY",
    )


OWN_OPTIONS = {
    name: replace(declared, section=declared.section or TRAINING)
    for holder in (RunOptions, TrainingOptions)
    for name, declared in options_of(holder).items()
}
for member in fields(TrainingOptions):
    # What transformers' argument parser takes.
    member.metadata = MappingProxyType({"help": OWN_OPTIONS[member.name].doc.replace("%", "%%")})
# What `--help` shows.
TRAIN_OPTIONS = OWN_OPTIONS | {name: replace(declared, section=MODEL) for name, declared in MODEL_OPTIONS.items()}


def read_value(declared: Option, value: Any) -> Any:
    """Returns the value of an option from a command line, YAML or Python; a ValueError says why it cannot have it."""
    read = value.value if isinstance(value, Enum) else fspath(value) if isinstance(value, PathLike) else value
    word = read.strip().lower() if isinstance(read, str) else ""
    if isinstance(read, tuple):
        read = list(read)
    elif read is False and declared.type is str:
        read = "no"  # which YAML reads so: no evaluation, or Norwegian
    elif declared.type is object:
        return read
    elif declared.optional and word in ("none", "null") and word not in declared.choices:
        read = None
    elif declared.type is bool:
        read = BOOLEANS.get(word, read)
    elif declared.type in (int, float) and (word or type(read) is int):
        with contextlib.suppress(ValueError):
            number = float(read)
            read = int(number) if declared.type is int and number.is_integer() else number
    if problem := declared.problem(read):
        is_number = isinstance(read, int | float) and not isinstance(read, bool)
        raise ValueError(f"{declared.name} is {f'{read:g}' if is_number else f'{value!r:.80}'}; {problem}")
    return read
