"""Sentences of given words as the model reads them: long ones in windows, encoded, and in batches with their labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor

from ..model.batches_triaffine import INPUT_NAMES
from ..model.decoding_triaffine import FoundInText
from ..model.kinds_triaffine import NONE_LABEL
from ..model.processing_triaffine import TriaffineProcessor
from ..model.text_triaffine import Piece
from ..model.triaffine_ops import span_mask
from ..nesting import Span
from .schema import CONTEXT_FIELDS
from .texts import moved

# ---- Windows ----

WHOLE = Piece([])  # stands for all words of a record


class Window(NamedTuple):
    """A part of the record in a `row`: all of it, or the words of a `piece`, as a `record` of its own."""

    row: int
    record: Mapping[str, Any] | None = None
    piece: Piece = WHOLE


class Windows(Sequence[dict[str, Any]]):
    """Records, of which those of more than the processor's `max_sentence_words` are divided into windows, as records.

    Memory and time for a sentence grow faster than its length, and corpora have sentences of any length: a newspaper in
    columns without blank lines is one of 200,000 words. Without a processor, all records stay whole.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]], processor: TriaffineProcessor | None = None):
        self.records = records
        sentences: Iterable[Sequence[str]] = (record["tokens"] for record in records)
        if isinstance(records, Dataset) and "tokens" in records.column_names:  # a transform may add the column
            sentences = records["tokens"]
        self._windows: list[Window] = []
        for row, tokens in enumerate(sentences):
            is_long = processor is not None and len(tokens) > processor.max_sentence_words
            self._windows += _windows_of(row, records[row], processor) if is_long else [Window(row)]

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, number: Any) -> Any:
        window = self._windows[number]
        return self.records[window.row] if window.record is None else window.record

    def owns(self, number: int, start: int, end: int) -> bool:
        """True if an entity of a window, in its words (`end` exclusive), belongs to it, not to a neighboring one."""
        piece = self._windows[number].piece
        return piece is WHOLE or piece.owns(start, end)

    def join(self, found: Iterable[Iterable[Any]]) -> list[list[Any]]:
        """Entities of each window, in words of the window → entities of each record, in its words, each once."""
        by_record = [FoundInText() for _ in self.records]
        for window, entities in zip(self._windows, found, strict=True):
            by_record[window.row].add(window.piece, entities)
        for of_record in by_record:
            if of_record.words:  # windows overlap, and so their entities are not in order
                of_record.entities.sort(key=lambda entity: (entity["start"], -entity["end"]))
        return [of_record.entities for of_record in by_record]

    def join_spans(self, found: Iterable[Iterable[Span]]) -> list[list[Span]]:
        """The same for spans, (start, end exclusive)."""
        joined = self.join([{"start": start, "end": end} for start, end in spans] for spans in found)
        return [[(span["start"], span["end"]) for span in spans] for spans in joined]


def _windows_of(row: int, record: Mapping[str, Any], processor: Any) -> Iterator[Window]:
    """The windows of a long record, as records: words, parts of speech, entities inside, and the words around it."""
    entities = sorted(record.get("entities") or (), key=lambda entity: entity["start"])
    starts = [entity["start"] for entity in entities]
    for piece in processor.windows(record["tokens"], *(record.get(side) or () for side in CONTEXT_FIELDS)):
        start, end = piece.offsets[0][0], piece.offsets[-1][1]
        window = {**record, "tokens": piece.words, **dict(zip(CONTEXT_FIELDS, (piece.left, piece.right), strict=True))}
        if record.get("pos"):
            window["pos"] = record["pos"][start:end]
        if record.get("entities") is not None:
            near = entities[bisect_left(starts, start) : bisect_left(starts, end)]
            inside = (entity for entity in near if entity["end"] <= end)
            window["entities"] = [{**entity, **moved(entity, -start)} for entity in inside]
        yield Window(row, window, piece)


def spans_of(record: Mapping[str, Any]) -> set[Span]:
    """The spans of the entities, those of several types once."""
    return {(entity["start"], entity["end"]) for entity in record["entities"]}


# ---- Features and batches ----

# Values of `flat_annotation`: which of nested entities a corpus annotates, if not all.
FLAT_ANNOTATIONS = ("outermost",)


def encode_records(processor: TriaffineProcessor, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Encodes records as [`encode_words`], with their other fields, such as `entities` and `id`, for a collator."""
    features = encode_words(processor, records)
    return [with_fields(feature, record) for feature, record in zip(features, records, strict=True)]


def encode_words(processor: TriaffineProcessor, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Encodes what the model reads of records: `tokens`, and `pos`, `left_tokens`, `right_tokens` where given."""
    optional = {name: [record.get(name) for record in records] for name in ("pos", "left_tokens", "right_tokens")}
    return processor.encode([record["tokens"] for record in records], **optional)


def with_fields(feature: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    return {**feature, **{name: value for name, value in record.items() if name not in INPUT_NAMES}}


class DataCollatorForNestedNER:
    """Pads sentences to one batch and builds the label matrix [B, N, N] of their entities. It encodes plain records.

    Entry (i, j) is the label id of the span from word i to word j, both inclusive: None's id without an entity, -100
    where there is no span (i > j, or beyond the sentence). If a span has two types, the last one in label order counts,
    an auxiliary one only if it has no other. With `multi_label` the matrix is [B, N, N, R - 1], with 1 for each label
    of a span and 0 for the others. Features whose `entities` are missing or null give a batch without labels.

    With transformers' own `Trainer`, set `remove_unused_columns=False` to keep `entities`, and use `accelerate launch`
    for several GPUs; `compute_metrics`, `predict` and label smoothing do not work.

    Args:
        processor: the [`TriaffineProcessor`] that encoded the sentences.
        label2id, multi_label, auxiliary_labels: as in the model's configuration.
        flat_annotation: "outermost" for a corpus that annotates outermost entities only: spans inside an entity get
            -100 and are left out of the loss, because they may be entities, too. None: all entities are annotated.

    Raises:
        ValueError: another `flat_annotation`; sentences encoded together; entities in some sentences of a batch only,
            outside of their sentence, or of a type that is not a label.

    Examples:
        >>> from modeling_triaffine import DataCollatorForNestedNER, TriaffineConfig, TriaffineProcessor
        >>> processor = TriaffineProcessor.from_pretrained("outputs/demo/model")
        >>> config = TriaffineConfig.from_pretrained("outputs/demo/model")
        >>> collate = DataCollatorForNestedNER(processor, config.label2id)
        >>> features = processor.encode([["The", "mayor", "of", "Orsk"]])
        >>> batch = collate([features[0] | {"entities": []}])
        >>> batch["labels"].shape
        torch.Size([1, 4, 4])
    """

    def __init__(
        self,
        processor: TriaffineProcessor,
        label2id: Mapping[str, int],
        flat_annotation: str | None = None,
        multi_label: bool = False,
        auxiliary_labels: Iterable[str] | None = None,
    ):
        if flat_annotation not in (None, *FLAT_ANNOTATIONS):
            raise ValueError(f"flat_annotation is {flat_annotation!r}; choose one of {', '.join(FLAT_ANNOTATIONS)}.")
        self.processor = processor
        self.label2id = dict(label2id)
        self.flat_annotation = flat_annotation
        self.multi_label = multi_label
        self.auxiliary = {label2id[name] for name in auxiliary_labels or ()}

    def __call__(self, features: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        if "input_ids" not in features[0]:
            features = encode_records(self.processor, features)
        if np.ndim(features[0]["num_words"]):
            raise ValueError("Features are sentences, but these are batches: use `processor.encode([words])[0]`.")
        batch = self.processor.pad(features)
        unlabelled = [number for number, feature in enumerate(features) if feature.get("entities") is None]
        if not unlabelled:
            batch["labels"] = self._label_matrix(features, batch["num_words"])
        elif len(unlabelled) < len(features):
            problem = f"{_name(features, unlabelled[0])} has no `entities`, but others in its batch have"
            raise ValueError(f"{problem}. Give it a list, an empty one if it has no entity.")
        return batch

    def _label_matrix(self, features: Sequence[dict[str, Any]], num_words: Tensor) -> Tensor:
        labels_of_span: dict[tuple[int, int, int], set[int]] = {}
        for sentence, (feature, size) in enumerate(zip(features, num_words.tolist(), strict=True)):
            for entity in feature["entities"]:
                start, end, kind = entity["start"], entity["end"], entity["type"]
                if not 0 <= start < end <= size or kind not in self.label2id or kind == NONE_LABEL:
                    known = ", ".join(name for name in self.label2id if name != NONE_LABEL)
                    problem = f"an entity from {start} to {end} of type {kind!r}, but {size} words and labels {known}"
                    remedy = "Offsets count words from 0, and the end is exclusive"
                    raise ValueError(f"{_name(features, sentence)} has {problem}. {remedy}.")
                labels_of_span.setdefault((sentence, int(start), int(end) - 1), set()).add(self.label2id[kind])
        spans = span_mask(num_words, max(1, int(num_words.max())))
        matrix = torch.where(spans, 0 if self.multi_label else self.label2id[NONE_LABEL], -100)
        for sentence, first, last in labels_of_span if self.flat_annotation else ():
            matrix[sentence, first : last + 1, first : last + 1] = -100
        if self.multi_label:
            matrix = matrix.unsqueeze(-1).repeat(1, 1, 1, len(self.label2id) - 1)
        for span, labels in labels_of_span.items():
            if self.multi_label:
                matrix[span] = 0
                matrix[span][sorted(labels)] = 1
            else:
                matrix[span] = max(labels - self.auxiliary or labels)
        return matrix


def _name(features: Sequence[Mapping[str, Any]], number: int) -> str:
    return f"Sentence {features[number].get('id', f'{number} of the batch')}"
