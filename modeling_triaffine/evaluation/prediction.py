"""Runs a model on sentences and texts: entities by word, and by character with uncertainty."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from datasets import Dataset
from torch import Tensor
from tqdm import tqdm

from ..data import add_context
from ..data.collator import Windows, encode_records
from ..model.batches_triaffine import BatchReader
from ..model.configuration_triaffine import TriaffineConfig
from ..model.decoding_triaffine import CopiedScores, FoundInText, Threshold, final_scores, find_entities
from ..model.kinds_triaffine import Keep, TextEntity, WordEntity, resolve_overlaps
from ..model.model_triaffine import TriaffineForNestedNER, evaluating
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from ..model.text_triaffine import Offsets
from ..model.triaffine_blocks import ACCELERATION
from ..model.triaffine_ops import label_probabilities
from ..nesting import Span
from .scores import Scores, score_entities, without_labels

Result = TypeVar("Result")


def with_context(
    corpus: Dataset, processor: TriaffineProcessor, unscored: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """The records of a corpus with the context that the model reads, without entities of the labels `unscored`."""
    records = [*add_context(corpus, processor.context, processor.max_subwords)]
    entities = without_labels([record["entities"] for record in records], unscored or ())
    return [{**record, "entities": kept} for record, kept in zip(records, entities, strict=True)]


def unknown_labels(records: Iterable[Mapping[str, Any]], config: TriaffineConfig) -> list[str]:
    """The entity types of the records that the model cannot find, because they are not among its labels."""
    return sorted({entity["type"] for record in records for entity in record["entities"]} - set(config.trained_labels))


def read_records(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    read: Callable[[dict[str, Tensor]], Any],
    batch_size: int | None = PredictionOptions.batch_size,
    doing: str = "Predicting",
    finish: Callable[[Any], Iterable[Result]] = iter,
) -> list[Result]:
    """Runs the model on batches of records of similar length, without dropout and gradients; returns their results.

    `read` takes the inputs of a batch and returns before a GPU has computed; `finish` makes the results of the records
    of what it returned, on the CPU. `doing` is the text of the progress bar.
    """
    processor.check_fits(model.config)
    reader = BatchReader(processor.pad, read, finish, model.device, batch_size, inside=partial(evaluating, model))
    found = reader.read(records, partial(encode_records, processor))
    return [result for _, result in tqdm(found, doing, len(records), leave=False, disable=None)]


def predict_words(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    batch_size: int | None = PredictionOptions.batch_size,
    threshold: Threshold | None = None,
    overlap: str | Keep = PredictionOptions.overlap,
) -> list[list[WordEntity]]:
    """Predicts the entities of each record: {start, end (exclusive, in words), type, score}.

    Sentences of more than `max_sentence_words` of the processor are read in windows, as those of raw text.

    Args:
        records: sentences with `tokens`, and `pos`, `left_tokens`, `right_tokens` where the model reads them.
        batch_size: sentences of average length in a batch; batches of long sentences have fewer.
        threshold, overlap: see [`NestedNERPipeline`].
    """

    def read(inputs: dict[str, Tensor]) -> CopiedScores:
        return CopiedScores(ACCELERATION.run(model, {**inputs, "return_dict": True}))

    windows = Windows(records, processor)
    decode = partial(find_entities, config=model.config, threshold=threshold)
    found: Any = windows.join(read_records(model, processor, windows, read, batch_size, finish=decode))
    return [resolve_overlaps(entities, overlap) for entities in found]


def candidate_spans(output: Any) -> list[list[Span]]:
    """The candidates of each sentence as (start, end exclusive), from the output of a model with a cross-span stage."""
    return [
        [(i, j + 1) for (i, j), is_span in zip(spans, mask, strict=True) if is_span]
        for spans, mask in zip(output.candidates.tolist(), output.candidate_mask.tolist(), strict=True)
    ]


def score_raw_text(
    pipeline: NestedNERPipeline, documents: Sequence[Mapping[str, Any]], unscored: Collection[str] = (), **decoding: Any
) -> Scores:
    """Scores the pipeline on raw text: an entity is correct if its characters and type are.

    The processor splits sentences and words, so entities that end inside a word or cross sentences count as missing.

    Args:
        documents: `text`, and `entities` with `start`, `end` (characters, exclusive) and `type`.
        unscored: labels whose predictions do not count.
        decoding: options of the pipeline.
    """
    gold = [document["entities"] for document in documents]
    found = pipeline((document["text"] for document in documents), **decoding)
    predictions = list(tqdm(found, total=len(documents), desc="Reading", leave=False, disable=None))
    auxiliary = pipeline.model.config.auxiliary_labels or ()
    return score_entities(without_labels(predictions, unscored), without_labels(gold, auxiliary))


@dataclass
class ReadText:
    """A text with its predicted entities."""

    text: str = ""
    entities: list[TextEntity] = field(default_factory=list)
    sentences: list[list[Offsets]] = field(default_factory=list)  # of each sentence, the characters of its words
    uncertainty: float = 0.0  # of its least certain sentence, see [`uncertainty`]


def uncertainty(output: Any, config: TriaffineConfig) -> Tensor:
    """The uncertainty of the labels in each sentence of a batch, [B], between 0 and 1.

    1 − (p₁ − p₂) of the span whose two likeliest labels (None included) are closest. With `multi_label`, each label of
    a span is a decision between p and 1 − p.
    """
    logits, _, mask = output.wait() if isinstance(output, CopiedScores) else final_scores(output)
    probabilities = label_probabilities(logits, config.multi_label, config.temperature)
    if config.multi_label:
        own = probabilities[..., :-1]
        probabilities, mask = torch.stack([own, 1.0 - own], dim=-1), mask.unsqueeze(-1)
    likeliest = probabilities.topk(2, dim=-1).values
    margins = 1.0 - (likeliest[..., 0] - likeliest[..., 1])
    return (margins * mask).flatten(1).amax(-1)


def read_texts(
    pipeline: NestedNERPipeline,
    texts: Iterable[str],
    batch_size: int | None = PredictionOptions.batch_size,
    threshold: Any = None,
    overlap: str | Keep = PredictionOptions.overlap,
) -> list[ReadText]:
    """Predicts the entities of each text with their uncertainty; the options are those of a call of the pipeline."""

    def finish(scores: CopiedScores) -> Iterable[tuple[list[WordEntity], float]]:
        return zip(pipeline.decode(scores, threshold), uncertainty(scores, pipeline.model.config).tolist(), strict=True)

    read: list[ReadText] = []
    text, found = ReadText(), FoundInText()
    for sentence, (entities, of_sentence) in pipeline.read_sentences(texts, finish, batch_size):
        found.add(sentence.piece, entities)
        text.sentences += [] if sentence.piece.shared_before else [[]]  # words shared with the window before
        text.sentences[-1] += sentence.piece.offsets[sentence.piece.shared_before :]
        text.uncertainty = max(text.uncertainty, of_sentence)
        if sentence.is_last:
            text.text, text.entities = sentence.text, found.in_characters(sentence.text, overlap)
            read.append(text)
            text, found = ReadText(), FoundInText()
    return read
