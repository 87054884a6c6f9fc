"""The data of a run: its files, the number of its sentences, and which words they are split into.

A corpus may split words in its own way (GENIA at the boundaries of its entities: `CD28 | -mediated`), and a model
trained on these words only is silently much worse on raw text, which its own word splitter splits. So a model is
trained on the words of raw text if the corpus has its text, and scored on both.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from datasets import Dataset, DatasetDict, concatenate_datasets

from ..data import Text, WordSplitter, retokenize
from ..data.loading import CorpusFiles
from ..data.parts_of_speech import add_parts_of_speech, spacy_tagger
from ..data.windows import Windows, spans_of
from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.processing_triaffine import PosTagger, TriaffineProcessor
from .arguments import NestedNERTrainingArguments
from .batching import check_types, entity_types
from .options import DataArguments

logger = logging.getLogger(__name__)

NEEDED = ("tokens", "entities")  # columns of a corpus
MOST_SHARED = 0.02  # of the sentences of a split, those that are training sentences, too, without a warning


@dataclass(frozen=True)
class Corpus:
    """The splits of a run.

    Attributes:
        words: the words to train on: those of the "corpus", those of raw "text", or "both".
        given: the splits in the words of the corpus, on which the model is scored.
        cut: the same sentences in the words of raw text; `given` itself if the corpus has no words of its own, or if
            only those are trained on.
        files: those that they were read from, of which the last with a split has its texts.
    """

    words: str
    given: DatasetDict
    cut: DatasetDict
    files: tuple[CorpusFiles, ...] = ()

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

    def _cut_differently(self) -> Dataset:
        """The training sentences whose words differ in raw text, in these words."""
        given, cut = self.given["train"], self.cut["train"]
        words = dict(zip(given["id"], given["tokens"], strict=True))  # of bad records, one of both may be dropped
        pairs = zip(cut["id"], cut["tokens"], strict=True)
        return cut.select([row for row, (name, tokens) in enumerate(pairs) if words.get(name) != tokens])

    def describe_words(self) -> str:
        """One line on the words of the training data."""
        if self.words == "corpus":
            return "Words: those of the corpus."
        if self.cut is self.given:
            return "Words: those of raw text."
        changed, sentences = len(self._cut_differently()), len(self.given["train"])
        if not changed:
            return "Words: those of the corpus, which are also those of raw text."
        if self.words == "both":
            return (
                f"Words: {sentences:,} training sentences in the words of the corpus, and {changed:,} of them again "
                "in the words of raw text, because these differ. (--words text or corpus trains on one of the two.)"
            )
        return (
            f"Words: those of raw text, which differ from the corpus's in {changed:,} of {sentences:,} training "
            "sentences. (--words corpus trains on the corpus's own.)"
        )


def read_corpus(
    data: DataArguments, word_splitter: WordSplitter, reads_tags: bool, sentence_splitter: str | None = None
) -> Corpus:
    """Reads the splits train, validation and test from the files of the options.

    Args:
        word_splitter: the one with which the model splits raw text.
        reads_tags: whether the model reads parts of speech, which belong to the words of the corpus.
        sentence_splitter: that of the model, by name.
    """
    own = {"validation": data.validation_file, "test": data.test_file}
    paths: list[str | Mapping[str, str]] = [data.train_file] if data.train_file else []
    paths += [{split: file} for split, file in own.items() if file]
    files = tuple(CorpusFiles(path, data.data_format, max_bad_records=data.max_bad_records) for path in paths)
    words = _choose_words(files, data, reads_tags)
    load = partial(_load_splits, files, data, sentence_splitter)
    given = load(None if words == "corpus" else word_splitter, in_own_words=True)
    if words == "corpus" or not any(source.has_own_words for source in files):
        return Corpus(words, given, given, files)
    return Corpus(words, given, load(word_splitter, in_own_words=False), files)


def limit_splits(splits: DatasetDict, data: DataArguments) -> DatasetDict:
    """Returns the splits with their first sentences only, as many as the options allow."""
    limited = dict(splits)
    for split, limit in _limits(data).items():
        if split in splits and limit is not None:
            limited[split] = splits[split].select(range(min(limit, len(splits[split]))))
    return DatasetDict(limited)


def texts_to_score(corpus: Corpus, data: DataArguments, split: str, records: Dataset) -> list[Text] | None:
    """The texts of the split that has the sentences `records`; None if the corpus has words only.

    If the number of sentences is limited, only texts that are complete within the limit.
    """
    own_file = {"validation": data.validation_file, "test": data.test_file}[split]
    named = tuple(source for source in corpus.files if split in source.parts)
    sources = named or (() if own_file else corpus.files)  # a file of its own, or one with several splits in it
    if not sources or not sources[-1].keeps_text:
        return None
    texts = sources[-1].texts(split).get(split, [])
    limit = _limits(data)[split]
    if limit is None or len(records) < limit:
        return texts
    names = list(records["doc_id"])
    complete = set(names) - {names[-1]}
    return [text for text in texts if text["doc_id"] in complete]


def label_names(records: Dataset) -> list[str]:
    """Returns the labels of a training corpus: its entity types in alphabetical order, and None."""
    return [*sorted(set().union(*entity_types(records, "The training data"))), NONE_LABEL]


def check_splits(training: NestedNERTrainingArguments, dataset: DatasetDict) -> None:
    """Raises ValueError if a split to train or score on is missing."""
    if training.do_train and "train" not in dataset:
        raise ValueError("There is no training data; give --train_file, or --no_do_train to score a trained model.")
    if training.do_train and training.eval_strategy != "no" and "validation" not in dataset:
        raise ValueError(
            "There is no validation data to choose the best checkpoint; give --validation_file, or hold out a part of "
            "the training data (docs/corpora.md#dev-sets). To train without validation, add --eval_strategy no."
        )
    needed = {"validation": training.do_eval and not training.do_train, "test": training.do_predict}
    for split, is_needed in needed.items():
        if is_needed and split not in dataset:
            option = {"validation": "do_eval", "test": "do_predict"}[split]
            raise ValueError(f"There is no {split} data to score (--{option}); give --{split}_file.")


def check_entities(config: TriaffineConfig, processor: TriaffineProcessor, dataset: DatasetDict) -> None:
    """Raises ValueError for entity types that the model has no label for.

    Warns of entities that it cannot find, and of training sentences that it would be scored on.
    """
    for split, records in dataset.items():
        check_types(records, f"The {split} data", config)
    _warn_of_missed_entities(config, processor, dataset)
    _warn_of_shared_sentences(dataset)


def _warn_of_shared_sentences(dataset: DatasetDict) -> None:
    training = set(map(tuple, dataset["train"]["tokens"])) if "train" in dataset else set()
    for split, records in dataset.items():
        rows = zip(records["tokens"], records["entities"], strict=True) if split != "train" else ()
        sentences = [tuple(tokens) for tokens, entities in rows if entities]
        shared = sum(sentence in training for sentence in sentences)
        if shared > MOST_SHARED * len(sentences):
            logger.warning(
                "%d of the %d %s sentences with entities are also training sentences, so scores will be higher than on "
                "new text.",
                *(shared, len(sentences), split),
            )


def _warn_of_missed_entities(config: TriaffineConfig, processor: TriaffineProcessor, dataset: DatasetDict) -> None:
    """Warns of entities that cannot be found.

    These are of a second type on a span, in no window of a long sentence, beyond the candidates, or too wide.
    """
    most, width = config.max_candidates, config.max_span_width
    for split, records in dataset.items():
        spans = list(map(spans_of, records))
        windows = Windows(records, processor)
        if long := windows.describe_long():
            logger.warning("The %s data: %s", split, long)
        typed = [{(e["start"], e["end"], e["type"]) for e in entities} for entities in records["entities"]]
        second = sum(map(len, typed)) - sum(map(len, spans))
        if second and not config.multi_label:
            logger.warning(
                "The %s data has %d entities on the span of another entity. A span has one label, so at most one of "
                "them is trained on and found; to allow several, train with --multi_label true.",
                *(split, second),
            )
        beyond = sum(max(0, len(spans_of(window)) - most) for window in windows)
        if beyond and config.cross_span:
            logger.warning(
                "The %s data has %d entity spans beyond the %d candidates of a sentence, which cannot be found. "
                "Raise --max_candidates.",
                *(split, beyond, most),
            )
        wide = 0 if width is None else sum(end - start > width for of_sentence in spans for start, end in of_sentence)
        if wide:
            logger.warning(
                "The %s data has %d entity spans (%.2f %%) of more than %d words, which are not scored.",
                *(split, wide, 100 * wide / sum(map(len, spans)), width),
            )


@cache
def tagger(pipeline: str) -> PosTagger:
    """The spaCy pipeline that `--pos_tagger` names."""
    try:
        return spacy_tagger(pipeline)
    except (ImportError, OSError) as error:
        raise ValueError(f"--pos_tagger: {error}") from None


def _choose_words(sources: Sequence[CorpusFiles], data: DataArguments, reads_tags: bool) -> str:
    """Resolves `--words auto` for these files, and warns of choices that lower the scores on raw text."""
    if not any(source.has_own_words for source in sources):
        return "text"
    if data.words == "auto" and reads_tags and data.pos_tagger is None:
        logger.warning(
            "Words: those of the corpus, because the model reads its parts of speech. Such a model can be much worse "
            "on raw text, which has other words. For raw text, train with --pos_tagger PIPELINE --words text."
        )
        return "corpus"
    if data.words == "auto":
        return "text" if all(source.keeps_text for source in sources) else "both"
    if data.words == "corpus":
        logger.warning(
            "--words corpus: raw text has other words, on which a model trained on the corpus's words only can be much "
            "worse (F1 falls from 79.1 to 61.5 on GENIA, from 65.9 to 65.5 on GUM). For raw text, train with --words "
            "text or both."
        )
    return data.words


def _load_splits(
    files: Sequence[CorpusFiles],
    data: DataArguments,
    sentence_splitter: str | None,
    word_splitter: WordSplitter | None,
    in_own_words: bool,
) -> DatasetDict:
    splits: dict[str, Dataset] = {}
    for source in files:
        sentences = None if source.marks_sentences else sentence_splitter
        if source.keeps_text:
            splits |= source.sentences(None if in_own_words and source.has_own_words else word_splitter, sentences)
        else:
            given = DatasetDict(source.sentences(None, sentences))
            splits |= given if in_own_words or word_splitter is None else retokenize(given, word_splitter)
    if data.pos_tagger is not None:
        splits = {split: add_parts_of_speech(records, tagger(data.pos_tagger)) for split, records in splits.items()}
    return DatasetDict(splits)


def _limits(data: DataArguments) -> dict[str, int | None]:
    return {
        "train": data.max_train_samples,
        "validation": data.max_eval_samples,
        "test": data.max_predict_samples,
    }
