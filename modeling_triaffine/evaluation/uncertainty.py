"""Uncertainty sampling: which texts to annotate first, by the uncertainty of a model's predictions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..model.batches_triaffine import BatchReader
from ..model.configuration_triaffine import TriaffineConfig
from ..model.decoding_triaffine import FoundInText, final_scores, find_entities
from ..model.kinds_triaffine import Keep, TextEntity, WordEntity
from ..model.model_triaffine import evaluating
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.text_triaffine import Offsets
from ..model.triaffine_ops import label_probabilities


@dataclass
class ReadText:
    """A text with its predicted entities.

    Attributes:
        entities: as [`NestedNERPipeline`] returns them.
        sentences: the character offsets of the words of each sentence.
        uncertainty: of its least certain sentence, see [`uncertainty`].
    """

    text: str
    entities: list[TextEntity] = field(default_factory=list)
    sentences: list[list[Offsets]] = field(default_factory=list)
    uncertainty: float = 0.0


def uncertainty(output: Any, config: TriaffineConfig) -> Tensor:
    """The uncertainty of the labels in each sentence of a batch, [B], between 0 and 1.

    1 − (p₁ − p₂) of the span whose two likeliest labels (None included) are closest. With `multi_label`, each label of
    a span is a decision between p and 1 − p.
    """
    logits, _, mask = final_scores(output)
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
    """Predicts the entities of each text, with the uncertainty of the predictions.

    The options are those of [`NestedNERPipeline`].
    """
    model, processor = pipeline.model, pipeline.processor

    def finish(output: Any) -> Iterable[tuple[list[WordEntity], float]]:
        entities = find_entities(output, model.config, threshold)
        return zip(entities, uncertainty(output, model.config).tolist(), strict=True)

    pairs = [(ReadText(text), FoundInText()) for text in texts]
    sentences = (
        (read_text, found, words) for read_text, found in pairs for words in processor.read_text(read_text.text)
    )
    reader = BatchReader(processor.pad, lambda inputs: model(**inputs), finish, model.device, batch_size)
    with evaluating(model):
        for (read_text, found, words), (entities, of_sentence) in reader.read(
            sentences, lambda some: processor.encode_sentences([words for *_, words in some])
        ):
            found.add(words.piece, entities)
            read_text.sentences.append(words.piece.offsets[words.piece.shared_before :])
            read_text.uncertainty = max(read_text.uncertainty, of_sentence)
    for read_text, found in pairs:
        read_text.entities = found.in_characters(read_text.text, overlap)
    return [read_text for read_text, _ in pairs]
