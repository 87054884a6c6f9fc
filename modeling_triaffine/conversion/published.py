"""Converts a checkpoint of the published implementation to a model and a processor of this package.

The published training saves the whole model as a pickle, which is read without running it (`inert_checkpoint.py`); the
names of its tensors are in `published_names.py`. This file has the meaning of the checkpoint's settings, what it does
not contain (names of labels, vocabularies, context), and what cannot be converted. The converted model computes what
the published code computes: the softmax of the cross-span attention is over the scored spans
(`cross_span_axis="query"`), and the character BiLSTM is read at the last character.
"""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoConfig

from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import PADDING, UNKNOWN, TriaffineProcessor
from ..new_model import number_names
from .inert_checkpoint import CheckpointError, InertObject, module_tensors, read_checkpoint, submodule
from .published_names import WITHOUT_USE, our_name


class PublishedCorpus(NamedTuple):
    """The facts that published checkpoints of a corpus lack: the labels in order, and the context in training."""

    labels: tuple[str, ...]
    context: str


ACE = PublishedCorpus(("PER", "LOC", "ORG", "GPE", "FAC", "VEH", "WEA"), "document")
CORPORA = {
    "ace04": ACE,
    "ace05": ACE,
    "genia": PublishedCorpus(("protein", "cell_type", "cell_line", "DNA", "RNA"), "previous_sentence"),
    "kbp17": PublishedCorpus(("GPE", "FAC", "ORG", "PER", "LOC"), "document"),
}

FULL_MODEL, SPAN_MODEL = "SpanAttModelV3", "SpanModel"
# Class of the scorer → its factors (ablations (a) to (g) and, in the full model, (h)).
SCORERS = {
    "Biaffine": {"attention": "none", "scoring": "biaffine_shared"},
    "TriAffineParserWithoutScorer": {"attention": "triaffine", "scoring": "linear"},
    "TriAffineParserWithoutLable": {"attention": "triaffine_no_label", "scoring": "triaffine"},
    "TriAffineParserWithoutBoundary": {"attention": "label", "scoring": "triaffine"},
    "TriAffineParserLinAttn": {"attention": "linear", "scoring": "triaffine"},
    "TriAffineParserWithoutScorerPlusBoundary": {"attention": "triaffine", "scoring": "linear_boundary_shared"},
    "TriAffineParser": {"attention": "triaffine", "scoring": "triaffine"},
}
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
# Where settings are stored: module (the model itself if empty) and attribute.
SETTINGS = (("encoder", "bert_additional_config"), ("encoder", "lstm_config"), ("", "score_setting"))
# Fields of an encoder's configuration that cannot be inferred from the shapes of its tensors.
ENCODER_FIELDS = ("num_attention_heads", "hidden_act", "layer_norm_eps", "position_embedding_type")
# Vocabulary of the processor → its file, written by the published preparation beside the data, and its tensor.
VOCABULARY_FILES = {"words": "word2id.json", "pos": "pos2id.json", "chars": "char2id.json"}
TABLES = {"words": "word_embedding", "pos": "pos_embedding", "chars": "char_embedding"}
LONGEST_REASON = 500  # characters; torch names every tensor that does not match


@dataclass(frozen=True)
class Converted:
    """A converted checkpoint in float32; `left_out` are the names of its tensors that prediction does not use."""

    model: TriaffineForNestedNER
    processor: TriaffineProcessor
    left_out: list[str]


def convert_published(
    checkpoint: str | Path,
    encoder: str,
    labels: Sequence[str],
    vocabularies: str | Path | None = None,
    context: str = "none",
) -> Converted:
    """Converts a checkpoint of the published implementation: the full model or an ablation.

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
    left_out = sorted(name for name in tensors if WITHOUT_USE.fullmatch(name))
    tensors = {name: tensor for name, tensor in tensors.items() if name not in left_out}
    parts = [part for part, table in TABLES.items() if f"encoder.{table}.weight" in tensors]
    numbers = _read_vocabularies(vocabularies, parts, tensors)
    for part, numbered in numbers.items():
        table = f"encoder.{TABLES[part]}.weight"
        tensors[table] = tensors[table][torch.tensor(list(numbered.values()))]

    config = _build_config(root, tensors, encoder, labels, context)
    model = TriaffineForNestedNER(config).eval()
    try:
        model.load_state_dict(_our_tensors(tensors, config))
    except RuntimeError as error:
        reason = textwrap.shorten(str(error), LONGEST_REASON, placeholder=" …")
        raise CheckpointError(f"{checkpoint} cannot be converted, perhaps with another encoder: {reason}") from None
    processor = TriaffineProcessor.from_encoder(encoder, max_subwords=config.max_subwords, context=config.context)
    processor.vocabulary_parts = parts
    processor.vocabularies = {part: number_names(numbered) for part, numbered in numbers.items()}
    return Converted(model, processor, left_out)


def _check_supported(root: Any) -> None:
    """Raises CheckpointError if this package does not support the pickled model."""
    if not isinstance(root, InertObject) or root.name not in (FULL_MODEL, SPAN_MODEL):
        found = getattr(root, "path", type(root).__name__)
        raise CheckpointError(f"it contains {found}, not a whole model of class {FULL_MODEL} or {SPAN_MODEL}")
    scorer = submodule(root, "parser_list.0")
    supported = ["TriAffineParser"] if root.name == FULL_MODEL else list(SCORERS)
    if scorer is None or scorer.name not in supported:
        found = "none" if scorer is None else scorer.name
        raise CheckpointError(f"its scorer is {found}, and only {', '.join(supported)} can be converted")
    settings = _settings(root)
    for name, value in FIXED_SETTINGS.items():
        if settings.get(name, value) != value:
            raise CheckpointError(f"it was trained with {name} = {settings[name]!r}, and only {value!r} is supported")
    if root.state.get("loss_config", {}).get("name") == "two":
        raise CheckpointError("it was trained with the loss 'two', which has no label for None")


def _settings(root: InertObject) -> dict[str, Any]:
    """The settings stored in the model's modules."""
    settings: dict[str, Any] = {"act": root.state.get("act", "relu")}
    for holder, name in SETTINGS:
        module = submodule(root, holder) if holder else root
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
    _check_encoder(root, encoder_config, encoder)
    scorer = submodule(root, "parser_list.0")
    assert scorer is not None  # the root was checked
    bias = tensors.get("parser_list.0.uni", tensors.get("parser_list.0.biaffine.offset"))
    count = 0 if bias is None else len(bias) - 1
    if count != len(labels):
        named = ", ".join(labels)
        raise ValueError(f"The checkpoint has {count} entity labels, but {len(labels)} are named: {named}.")
    fields: dict[str, Any] = {**SCORERS[scorer.name], "cross_span": root.name == FULL_MODEL}
    if fields["cross_span"]:
        shares = "final_uni" not in tensors
        fields |= {"max_candidates": root.state.get("max_span_count"), "share_triaffine": shares}
    if (inside := tensors.get("parser_list.0.linear_m1.layers.1.bias")) is not None:
        fields["triaffine_dim"] = len(inside)
    fields |= _word_fields(root, tensors)
    fields |= _dropout(root, "parser_list.0", "mlp_dropout", "dropout")
    return TriaffineConfig(
        encoder_config=encoder_config,
        id2label=dict(enumerate([*labels, NONE_LABEL])),
        cross_span_axis="query",
        char_readout="last_character",
        subword_pooling=_settings(root).get("subword_aggr", "first"),
        context=context,
        **fields,
    )


def _word_fields(root: InertObject, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Sizes and dropouts of the embeddings and BiLSTMs of word representations."""
    fields: dict[str, Any] = {}
    for part in ("word", "pos", "char"):
        if (table := tensors.get(f"encoder.{part}_embedding.weight")) is not None:
            fields |= {f"{part}_vocab_size": len(table), f"{part}_embedding_size": table.shape[1]}
            fields |= _dropout(root, f"encoder.{part}_dropout", f"{part}_dropout", "p")
    if (recurrent := tensors.get("encoder.char_lstm.weight_hh_l0")) is not None:
        fields["char_lstm_hidden_size"] = recurrent.shape[1]
    if (recurrent := tensors.get("encoder.lstm.weight_hh_l0")) is not None:
        layers = sum(name.startswith("encoder.lstm.weight_hh_l") for name in tensors) // 2
        fields |= {"lstm_hidden_size": recurrent.shape[1], "lstm_layers": layers}
        fields |= _dropout(root, "encoder.lstm", "lstm_dropout", "dropout")
    return fields


def _dropout(root: InertObject, module: str, field: str, attribute: str) -> dict[str, float]:
    """A dropout probability if the checkpoint has it, for further training."""
    child = submodule(root, module)
    value = None if child is None else child.state.get(attribute)
    return {field: float(value)} if isinstance(value, int | float) else {}


def _check_encoder(root: InertObject, config: Any, encoder: str) -> None:
    """Raises ValueError if the encoder differs from the checkpoint's in a field that shapes do not show."""
    child = submodule(root, "encoder")
    configs = child.state.get("bert_config_list") if child else None
    noted = configs[0].state if configs and isinstance(configs[0], InertObject) else {}
    for name in ENCODER_FIELDS:
        ours = getattr(config, name, None)
        if name in noted and ours is not None and noted[name] != ours:
            raise ValueError(f"The checkpoint's encoder has {name} {noted[name]!r}, but {encoder} has {ours!r}.")


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
        by_row = sorted(numbered, key=numbered.__getitem__)
        if (
            not fits
            or not {PADDING, UNKNOWN} <= {*numbered}
            or [numbered[name] for name in by_row] != [*range(len(by_row))]
        ):
            raise ValueError(
                f"{path} does not fit the checkpoint, which has {rows} rows for {part}: it needs [PAD], [UNK] and a "
                f"name for each number from 0, and has {len(numbered)} names."
            )
        names = dict.fromkeys([PADDING, UNKNOWN, *by_row])
        vocabularies[part] = {name: numbered[name] for name in names}
    return vocabularies


def _our_tensors(tensors: Mapping[str, Tensor], config: TriaffineConfig) -> dict[str, Tensor]:
    """The state dict of our model; unknown tensors keep their names."""
    state = {}
    for name, tensor in tensors.items():
        ours, turn = our_name(name) or (name, torch.clone)
        state[ours] = turn(_our_columns(name, tensor, config)).float()
    return state


def _our_columns(name: str, tensor: Tensor, config: TriaffineConfig) -> Tensor:
    """Reorders the inputs of the BiLSTM's first layer: the published code has parts of speech before words."""
    if not name.startswith("encoder.lstm.weight_ih_l0"):
        return tensor
    pos, words = config.pos_embedding_size, config.word_embedding_size
    rest = tensor.shape[1] - config.hidden_size - pos - words
    if rest < 0:
        return tensor  # reported as a wrong shape
    encoder, of_pos, of_words, of_chars = tensor.split([config.hidden_size, pos, words, rest], dim=1)
    return torch.cat([encoder, of_words, of_pos, of_chars], dim=1)
