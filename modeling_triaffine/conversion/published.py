"""Converts a checkpoint of the published implementation to a model and a processor of this package.

The published training saves the whole model as a pickle, which is read without running it (`inert_checkpoint.py`). This
file has the names of its tensors, the meaning of its settings, what it does not contain (names of labels, vocabularies,
context), and what cannot be converted. The converted model computes what the published code computes: the softmax of
the cross-span attention is over the scored spans (`cross_span_axis="query"`), and the character BiLSTM is read at the
last character.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig

from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import PADDING, UNKNOWN, TriaffineProcessor
from ..new_model import number_names
from .inert_checkpoint import CheckpointError, InertObject, module_tensors, read_checkpoint, submodule

# What published checkpoints of a corpus lack: the labels in their order, and the context in training.
CORPORA: dict[str, tuple[list[str], str]] = {
    **dict.fromkeys(["ace04", "ace05"], (["PER", "LOC", "ORG", "GPE", "FAC", "VEH", "WEA"], "document")),
    "genia": (["protein", "cell_type", "cell_line", "DNA", "RNA"], "previous_sentence"),
    "kbp17": (["GPE", "FAC", "ORG", "PER", "LOC"], "document"),
}

# Classes of the model with the cross-span stage and without it (ablation (g)), and of the scorer of both.
FULL_MODEL, SPAN_MODEL, SCORER = "SpanAttModelV3", "SpanModel", "TriAffineParser"
# Settings that change the computation → their only value that this package supports.
FIXED_SETTINGS = {
    "bert_output": "last",
    "bert_before_lstm": True,
    "context_lstm": False,
    "name": "lstm",
    "act": "relu",
    "scale": "none",
    "no_tri_mask": False,
}
# Vocabulary of the processor → its file, written by the published preparation beside the data, and its tensor.
VOCABULARY_FILES = {"words": "word2id.json", "pos": "pos2id.json", "chars": "char2id.json"}
TABLES = {"words": "word_embedding", "pos": "pos_embedding", "chars": "char_embedding"}

# Published names → ours.
MLPS = {
    "parser_list.0.linear_h": "head.attention.boundaries.head",
    "parser_list.0.linear_t": "head.attention.boundaries.tail",
    "parser_list.0.linear_m": "head.attention.inside",
    "parser_list.0.linear_h1": "head.scoring.boundaries.head",
    "parser_list.0.linear_t1": "head.scoring.boundaries.tail",
    "parser_list.0.linear_m1": "head.scoring.inside",
    "linear_h2": "head.cross_span.attention_boundaries.head",
    "linear_t2": "head.cross_span.attention_boundaries.tail",
    "linear_s2": "head.cross_span.attention_span",
    "linear_h3": "head.cross_span.scoring_boundaries.head",
    "linear_t3": "head.cross_span.scoring_boundaries.tail",
    "linear_s3": "head.cross_span.scoring_span",
}
# Their layers 0 and 1 are items 0 and 3 of our sequences, with ReLU and dropout between them.
MODULES = {f"{mlp}.layers.{layer}": f"{ours}.{3 * layer}" for mlp, ours in MLPS.items() for layer in (0, 1)} | {
    "encoder.reduce_dim": "words.projection",
    "encoder.word_embedding": "words.word_embedding",
    "encoder.pos_embedding": "words.pos_embedding",
    "encoder.char_embedding": "words.char_embedding",
}
BIASES = {"parser_list.0.uni": "head.label_bias", "final_uni": "head.cross_span.label_bias"}
TRIAFFINES = {
    "parser_list.0.parser0.weight": "head.attention.triaffine.weight",
    "parser_list.0.parser1.weight": "head.scoring.triaffine.weight",
    "span_triaffine.weight": "head.cross_span.attention_triaffine.weight",
    "final_parser.weight": "head.cross_span.scoring_triaffine.weight",
}
PRETRAINED = "encoder.bert_list.0."
LSTM = re.compile(r"encoder\.(lstm|char_lstm)\.((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?")
# Not used in prediction: the encoder's pooler, constants, and the heads of auxiliary losses.
WITHOUT_USE = re.compile(
    r"encoder\.bert_list\.0\.(?:pooler\..*|embeddings\.(?:position_ids|token_type_ids))|(?:linear_token|trans_bi)\..*"
)


def convert_published(
    checkpoint: str | Path,
    encoder: str,
    labels: Sequence[str],
    vocabularies: str | Path | None = None,
    context: str = "none",
) -> tuple[TriaffineForNestedNER, TriaffineProcessor]:
    """Converts a checkpoint of the published implementation to a model in float32 and its processor.

    Args:
        checkpoint: the `.pth` file of a published training. It is not executed.
        encoder: folder or Hub name of the encoder that it was trained with, for its configuration and tokenizer.
        labels: names of the entity labels in the order of their ids, without None ([`CORPORA`]).
        vocabularies: folder with the files in `VOCABULARY_FILES`; needed if the checkpoint has such embeddings.
        context: the context of a sentence in training ([`CORPORA`]).
    """
    root = read_checkpoint(checkpoint)
    try:
        _check_supported(root)
        tensors = module_tensors(root)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint} cannot be converted: {error}.") from None
    tensors = {name: tensor for name, tensor in tensors.items() if not WITHOUT_USE.fullmatch(name)}
    parts = [part for part, table in TABLES.items() if f"encoder.{table}.weight" in tensors]
    numbers = _read_vocabularies(vocabularies, parts, tensors)
    for part, numbered in numbers.items():
        table = f"encoder.{TABLES[part]}.weight"
        tensors[table] = tensors[table][torch.tensor(list(numbered.values()))]

    config = _build_config(root, tensors, encoder, labels, context)
    model = TriaffineForNestedNER(config).eval()
    try:
        state = (our_parameter(name, _our_columns(name, tensor, config)) for name, tensor in tensors.items())
        model.load_state_dict({name: tensor.float() for name, tensor in state})
    except RuntimeError as error:
        reason = textwrap.shorten(str(error), 500, placeholder=" …")  # which names every tensor that does not match
        raise CheckpointError(f"{checkpoint} cannot be converted, perhaps with another encoder: {reason}") from None
    processor = TriaffineProcessor.from_encoder(encoder, max_subwords=config.max_subwords, context=config.context)
    processor.vocabulary_parts = parts
    processor.vocabularies = {part: number_names(numbered) for part, numbered in numbers.items()}
    return model, processor


def _check_supported(root: Any) -> None:
    """Raises CheckpointError if this package does not support the pickled model."""
    if not isinstance(root, InertObject) or root.name not in (FULL_MODEL, SPAN_MODEL):
        found = getattr(root, "path", type(root).__name__)
        raise CheckpointError(f"it contains {found}, not a whole model of class {FULL_MODEL} or {SPAN_MODEL}")
    scorer = getattr(submodule(root, "parser_list.0"), "name", "none")
    if scorer != SCORER:
        raise CheckpointError(f"its scorer is {scorer}, and only {SCORER} can be converted")
    settings = _settings(root)
    for name, value in FIXED_SETTINGS.items():
        if settings.get(name, value) != value:
            raise CheckpointError(f"it was trained with {name} = {settings[name]!r}, and only {value!r} is supported")
    if root.state.get("loss_config", {}).get("name") == "two":
        raise CheckpointError("it was trained with the loss 'two', which has no label for None")


def _settings(root: InertObject) -> dict[str, Any]:
    """The settings stored in the model's modules."""
    settings: dict[str, Any] = {"act": root.state.get("act", "relu")}
    encoder = submodule(root, "encoder")
    for module, name in ((encoder, "bert_additional_config"), (encoder, "lstm_config"), (root, "score_setting")):
        noted = module.state.get(name) if module else None
        if not isinstance(noted, dict):
            raise CheckpointError(f"it lacks {name!r}, the settings of its modules")
        settings |= noted
    return settings


def _build_config(
    root: InertObject, tensors: Mapping[str, Tensor], encoder: str, labels: Sequence[str], context: str
) -> TriaffineConfig:
    """Infers sizes from the tensors, and choices from classes and settings."""
    encoder_config = AutoConfig.from_pretrained(encoder, trust_remote_code=False)  # and does not ask for it
    count = len(tensors["parser_list.0.uni"]) - 1
    if count != len(labels):
        named = ", ".join(labels)
        raise ValueError(f"The checkpoint has {count} entity labels, but {len(labels)} are named: {named}.")
    fields: dict[str, Any] = {"cross_span": root.name == FULL_MODEL}
    if fields["cross_span"]:
        shares = "final_uni" not in tensors
        fields |= {"max_candidates": root.state.get("max_span_count"), "share_triaffine": shares}
    return TriaffineConfig(
        triaffine_dim=len(tensors["parser_list.0.linear_m1.layers.1.bias"]),
        encoder_config=encoder_config,
        id2label=dict(enumerate([*labels, NONE_LABEL])),
        cross_span_axis="query",
        char_readout="last_character",
        subword_pooling=_settings(root).get("subword_aggr", "first"),
        context=context,
        **fields,
        **_word_fields(tensors),
    )


def _word_fields(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Sizes of the embeddings and BiLSTMs of word representations."""
    fields: dict[str, Any] = {}
    for part in ("word", "pos", "char"):
        if (table := tensors.get(f"encoder.{part}_embedding.weight")) is not None:
            fields |= {f"{part}_vocab_size": len(table), f"{part}_embedding_size": table.shape[1]}
    if (recurrent := tensors.get("encoder.char_lstm.weight_hh_l0")) is not None:
        fields["char_lstm_hidden_size"] = recurrent.shape[1]
    if (recurrent := tensors.get("encoder.lstm.weight_hh_l0")) is not None:
        layers = sum(name.startswith("encoder.lstm.weight_hh_l") for name in tensors) // 2
        fields |= {"lstm_hidden_size": recurrent.shape[1], "lstm_layers": layers}
    return fields


def _read_vocabularies(
    folder: str | Path | None, parts: Sequence[str], tensors: Mapping[str, Tensor]
) -> dict[str, dict[str, int]]:
    """Name → row of each embedding in the checkpoint: padding and unknown first, then in the order of the rows."""
    vocabularies = {}
    for part in parts:
        if folder is None:
            files = ", ".join(VOCABULARY_FILES[needed] for needed in parts)
            raise ValueError(f"The checkpoint has embeddings of {', '.join(parts)}. Give the folder with {files}.")
        path = Path(folder) / VOCABULARY_FILES[part]
        numbered: dict[str, int] = json.loads(path.read_bytes())
        rows = len(tensors[f"encoder.{TABLES[part]}.weight"])
        # Tables of parts of speech and characters have more rows than names.
        fits = len(numbered) == rows if part == "words" else len(numbered) <= rows
        if not fits or not {PADDING, UNKNOWN} <= {*numbered} or sorted(numbered.values()) != [*range(len(numbered))]:
            raise ValueError(
                f"{path} does not fit the checkpoint, which has {rows} rows for {part}: it needs [PAD], [UNK] and a "
                f"name for each number from 0, and has {len(numbered)} names."
            )
        names = dict.fromkeys([PADDING, UNKNOWN, *sorted(numbered, key=numbered.__getitem__)])
        vocabularies[part] = {name: numbered[name] for name in names}
    return vocabularies


def _our_columns(name: str, tensor: Tensor, config: TriaffineConfig) -> Tensor:
    """Reorders the inputs of the BiLSTM's first layer: the published code has parts of speech before words."""
    if not name.startswith("encoder.lstm.weight_ih_l0"):
        return tensor
    pos, words = config.pos_embedding_size, config.word_embedding_size
    rest = tensor.shape[1] - config.hidden_size - pos - words
    encoder, of_pos, of_words, of_chars = tensor.split([config.hidden_size, pos, words, rest], dim=1)
    return torch.cat([encoder, of_words, of_pos, of_chars], dim=1)


def our_parameter(name: str, tensor: Tensor) -> tuple[str, Tensor]:
    """The parameter for a published tensor, and its value; an unknown one keeps its name."""
    if name in TRIAFFINES:
        return TRIAFFINES[name], tensor.permute(3, 1, 0, 2)  # [head, inside, tail, label] → [label, inside, head, tail]
    if name.startswith(PRETRAINED):
        return f"encoder.{name.removeprefix(PRETRAINED)}", tensor
    module, _, kind = name.rpartition(".")
    if module in MODULES:
        return f"{MODULES[module]}.{kind}", tensor
    if part := LSTM.fullmatch(name):
        lstm, of_layer, layer, backward = part.groups()
        direction = "backward_layers" if backward else "forward_layers"
        return f"words.{lstm}.{direction}.{layer}.{of_layer}_l0", tensor
    return BIASES.get(name, name), tensor
