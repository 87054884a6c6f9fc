"""Runs a model on annotated sentences or documents: predictions by word, and scores on raw text by character."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset
from torch import Tensor
from tqdm import tqdm

from ..data import add_context
from ..data.collator import encode_records
from ..model.batches_triaffine import batches_by_length, feature_size
from ..model.decoding_triaffine import find_entities
from ..model.modeling_triaffine import TriaffineForNestedNER, evaluating
from ..model.pipeline_triaffine import BATCHES_AT_ONCE, NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from .scoring import score_entities

Entities = list[dict[str, Any]]


def with_context(corpus: Dataset, processor: TriaffineProcessor) -> list[dict[str, Any]]:
    """The records of a corpus, with as much context from their documents as the model reads."""
    return list(add_context(corpus, processor.context, processor.max_subwords))


def unknown_labels(records: Iterable[Mapping[str, Any]], config: Any) -> list[str]:
    """The entity types of the records that are not labels of the model, so that it cannot find them."""
    return sorted({entity["type"] for record in records for entity in record["entities"]} - set(config.entity_labels))


def word_batches(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    batch_size: int = 32,
    doing: str = "Predicting",
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches of sentences of similar length: their indices in `records`, and the model's inputs on its device.

    Every index occurs once. Arguments as in [`predict_words`]; `doing` is the text of the progress bar.
    """
    processor.check_fits(model.config)
    with tqdm(total=len(records), desc=doing, leave=False, disable=None) as progress:
        for first in range(0, len(records), batch_size * BATCHES_AT_ONCE):
            last = min(first + batch_size * BATCHES_AT_ONCE, len(records))
            features = encode_records(processor, [records[row] for row in range(first, last)])
            for rows in batches_by_length([feature_size(feature) for feature in features], batch_size):
                batch = processor.pad([features[row] for row in rows])
                yield [first + row for row in rows], {name: values.to(model.device) for name, values in batch.items()}
                progress.update(len(rows))


def predict_words(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    batch_size: int = 32,
    **decoding: Any,
) -> list[Entities]:
    """Predicts the entities of each record: {start, end (exclusive, in words), type, score}.

    Args:
        records: sentences with `tokens`, and `pos`, `left_tokens`, `right_tokens` where the model reads them.
        batch_size: sentences of average length in a batch; batches of long sentences have fewer.
        decoding: `threshold` and `overlap`, see [`find_entities`].
    """
    found: list[Entities] = [[] for _ in records]
    with evaluating(model):
        for rows, inputs in word_batches(model, processor, records, batch_size):
            for row, entities in zip(rows, find_entities(model(**inputs), model.config, **decoding), strict=True):
                found[row] = entities
    return found


def score_raw_text(
    pipeline: NestedNERPipeline, documents: Iterable[Mapping[str, Any]], **decoding: Any
) -> dict[str, Any]:
    """Scores the pipeline on raw text: an entity is correct if its characters and type are.

    The processor splits sentences and words, so entities that end inside a word or cross its sentence boundaries count
    as missing: these are the scores that a user of raw text sees.

    Args:
        documents: `text`, and `entities` with `start`, `end` (characters, exclusive) and `type`.
    """
    documents = list(documents)
    texts = (document["text"] for document in documents)
    predictions = list(
        tqdm(pipeline(texts, **decoding), total=len(documents), desc="Reading", leave=False, disable=None)
    )
    return score_entities(predictions, [document["entities"] for document in documents])
