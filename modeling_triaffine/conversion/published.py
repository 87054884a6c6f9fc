"""Converts a checkpoint of the published implementation to a model and a processor of this package.

The published training saves the whole model as a pickle, a program that names functions and calls them. It is read
without running it: torch's `weights_only` accepts only the names that tensors need. Here, inert classes stand for all
other names, so that the modules and settings around the tensors are read, too.

This file maps the names of tensors, and has the supported settings and what a checkpoint does not contain (names of
labels, vocabularies, context). The converted model computes what the published code computes: the
softmax of the cross-span attention is over the scored spans (`cross_span_axis="query"`), and the character BiLSTM is
read at the last character.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig

from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import PADDING, UNKNOWN, TriaffineProcessor
from ..new_model import number_names

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
UNUSED = re.compile(
    r"encoder\.bert_list\.0\.(?:pooler\..*|embeddings\.(?:position_ids|token_type_ids))|(?:linear_token|trans_bi)\..*"
)


# ---- Pickles that are not run ----


class CheckpointError(ValueError):
    """A checkpoint cannot be read or converted; the message says why."""


class InertObject:
    """The record of an object that a pickle would have built, or of a function that it would have called."""

    path = ""  # module and name of the class or function, as in the pickle
    state: dict[str, Any]  # the attributes of the object by name

    def __new__(cls, *arguments: Any, **keywords: Any) -> "InertObject":
        inert = object.__new__(cls)
        inert.state = {}
        return inert

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                self.state.update(part)


def read_checkpoint(path: str | Path) -> Any:
    """Reads a file written by `torch.save` of torch 1.6 or later; its tensors are mapped from the file."""
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        with torch.serialization.safe_globals([_inert_class(name) for name in names]):
            return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except OSError:
        raise
    except Exception as error:  # an invalid pickle can raise anything
        reason = " ".join(str(error).split())
        if isinstance(error, UnpicklingError):  # whose message advises to run the file
            reason = "its pickle has calls or instructions that a saved model does not need"
        raise CheckpointError(
            f"{path} was not written by torch.save (of torch 1.6 or later), or is damaged: {reason}"
        ) from None


def _inert_class(path: str) -> type[InertObject]:
    """Makes an inert class that replaces the class or function at this path."""
    module, _, name = path.rpartition(".")
    return type(name, (InertObject,), {"__module__": module, "path": path})


def named_modules(module: Any, name: str = "") -> dict[str, InertObject]:
    """A pickled `torch.nn.Module` and its descendants by their dotted names."""
    if not isinstance(module, InertObject) or "_modules" not in module.state:
        raise CheckpointError(f"{name or 'the saved object'} is not a module")
    found = {name: module}
    for child_name, child in module.state["_modules"].items():
        if child is not None:
            found |= named_modules(child, f"{name}.{child_name}" if name else child_name)
    return found


# ---- Conversion ----


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
        modules, settings = _supported_modules(root)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint} cannot be converted: {error}.") from None
    tensors: dict[str, Tensor] = {}
    for name, module in modules.items():
        own = module.state["_parameters"] | module.state["_buffers"]
        named = {f"{name}.{key}".lstrip("."): value for key, value in own.items() if isinstance(value, Tensor)}
        tensors |= {key: value.detach() for key, value in named.items() if not UNUSED.fullmatch(key)}
    parts = [part for part, table in TABLES.items() if f"encoder.{table}.weight" in tensors]
    numbers = _read_vocabularies(vocabularies, parts, tensors)
    for part, numbered in numbers.items():
        table = f"encoder.{TABLES[part]}.weight"
        tensors[table] = tensors[table][torch.tensor(list(numbered.values()))]

    count = len(tensors["parser_list.0.uni"]) - 1
    if count != len(labels):
        listed = ", ".join(labels)
        raise ValueError(f"The checkpoint has {count} entity labels, but {len(labels)} are named: {listed}.")
    config = TriaffineConfig(
        encoder_config=AutoConfig.from_pretrained(encoder, trust_remote_code=False),  # and does not ask for it
        id2label=dict(enumerate([*labels, NONE_LABEL])),
        cross_span_axis="query",
        char_readout="last_character",
        context=context,
        **_infer_fields(root, settings, tensors),
    )
    model = TriaffineForNestedNER(config).eval()
    try:
        state = (_our_parameter(name, tensor, config) for name, tensor in tensors.items())
        model.load_state_dict({name: tensor.float() for name, tensor in state})
    except RuntimeError as error:
        reason = textwrap.shorten(str(error), 500, placeholder=" …")  # which names every tensor that does not match
        raise CheckpointError(f"{checkpoint} cannot be converted, perhaps with another encoder: {reason}") from None
    processor = TriaffineProcessor.from_encoder(encoder, max_subwords=config.max_subwords, context=config.context)
    processor.vocabulary_parts = parts
    processor.vocabularies = {part: number_names(numbered) for part, numbered in numbers.items()}
    return model, processor


def _supported_modules(root: Any) -> tuple[dict[str, InertObject], dict[str, Any]]:
    """The modules of a pickled model by name, and their settings; a CheckpointError if these are not supported."""
    if not isinstance(root, InertObject) or type(root).__name__ not in (FULL_MODEL, SPAN_MODEL):
        found = getattr(root, "path", type(root).__name__)
        raise CheckpointError(f"it contains {found}, not a whole model of class {FULL_MODEL} or {SPAN_MODEL}")
    modules = named_modules(root)
    scorer = type(modules["parser_list.0"]).__name__
    if scorer != SCORER:
        raise CheckpointError(f"its scorer is {scorer}, and only {SCORER} can be converted")
    settings: dict[str, Any] = {"act": root.state.get("act", "relu")}
    for module, name in (("encoder", "bert_additional_config"), ("encoder", "lstm_config"), ("", "score_setting")):
        noted = modules[module].state.get(name)
        if not isinstance(noted, dict):
            raise CheckpointError(f"it lacks {name!r}, the settings of its modules")
        settings |= noted
    for name, value in FIXED_SETTINGS.items():
        if settings.get(name, value) != value:
            raise CheckpointError(f"it was trained with {name} = {settings[name]!r}, and only {value!r} is supported")
    if root.state.get("loss_config", {}).get("name") == "two":
        raise CheckpointError("it was trained with the loss 'two', which has no label for None")
    return modules, settings


def _infer_fields(root: InertObject, settings: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The fields of the configuration: sizes from the tensors, and choices from classes and settings."""
    fields: dict[str, Any] = {
        "cross_span": type(root).__name__ == FULL_MODEL,
        "subword_pooling": settings.get("subword_aggr", "first"),
        "triaffine_dim": len(tensors["parser_list.0.linear_m1.layers.1.bias"]),
    }
    if fields["cross_span"]:
        shares = "final_uni" not in tensors
        fields |= {"max_candidates": root.state.get("max_span_count"), "share_triaffine": shares}
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
            found = f"it needs [PAD], [UNK] and one name for each number from 0, and has {len(numbered)} names"
            raise ValueError(f"{path} does not fit the checkpoint's {rows} rows for {part}: {found}.")
        names = dict.fromkeys([PADDING, UNKNOWN, *sorted(numbered, key=numbered.__getitem__)])
        vocabularies[part] = {name: numbered[name] for name in names}
    return vocabularies


def _our_parameter(name: str, tensor: Tensor, config: TriaffineConfig) -> tuple[str, Tensor]:
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
        if (lstm, of_layer, layer) == ("lstm", "weight_ih", "0"):  # the published inputs have tags before words
            sizes = [config.hidden_size, config.pos_embedding_size, config.word_embedding_size]
            encoder, pos, words, chars = tensor.split([*sizes, tensor.shape[1] - sum(sizes)], dim=1)
            tensor = torch.cat([encoder, words, pos, chars], dim=1)
        direction = "backward_layers" if backward else "forward_layers"
        return f"words.{lstm}.{direction}.{layer}.{of_layer}_l0", tensor
    return BIASES.get(name, name), tensor
