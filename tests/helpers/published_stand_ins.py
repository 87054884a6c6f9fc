"""Stand-ins of the published implementation's classes, to pickle checkpoints as it does.

The classes exist only while a checkpoint is saved (`saved_as_published`); who reads it then cannot import them.
"""

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel

CLASSES = {
    "SpanAttModelV3": "model.span_att_v2",
    "SpanAttModelV2": "model.span_att_v2",
    "SpanModel": "model.span",
    "TextEncoder": "model.text_encoder",
    "MLP": "model.mlp",
    "Payload": "model.payload",
    "TriAffineParser": "model.parser",
    "LinearTriParser": "model.parser",
}
STAND_INS: dict[str, type] = {
    name: type(name, (nn.Module,), {"__module__": module}) for name, module in CLASSES.items()
}
SIZES = {"word": 6, "pos": 4, "char": 4}
WORDS = {"binds": 0, "gene": 1, "the": 2, "[UNK]": 3, "[PAD]": 4}
POS = {"NOUN": 0, "VERB": 1, "[UNK]": 2, "[PAD]": 3}
CHARS = {**{character: number for number, character in enumerate("abdeghint")}, "[UNK]": 9, "[PAD]": 10}


def stand_in(name: str, **attributes: Any) -> Any:
    """A module of a published class with these attributes."""
    module = STAND_INS[name]()
    for key, value in attributes.items():
        setattr(module, key, value)
    return module


def attach(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Puts tensors into a module by their dotted names; modules on the way are made."""
    for name, tensor in tensors.items():
        *path, last = name.split(".")
        place = module
        for part in path:
            if part not in place._modules:
                place.add_module(part, stand_in("MLP"))
            place = place._modules[part]
        place.register_parameter(last, nn.Parameter(tensor))


def published_encoder(pretrained: str, parts: bool = False) -> Any:
    """The published text encoder of random weights, with word, part-of-speech and character embeddings on wish."""
    torch.manual_seed(0)
    bert = BertModel.from_pretrained(pretrained)
    positions = torch.arange(bert.config.max_position_embeddings).unsqueeze(0)
    bert.embeddings.register_buffer("position_ids", positions)  # saved in those days
    width = bert.config.hidden_size
    encoder = stand_in(
        "TextEncoder",
        bert_list=nn.ModuleList([bert]),
        bert_config_list=[bert.config],
        bert_additional_config={"bert_before_lstm": True, "subword_aggr": "max", "bert_output": "last", "reinit": 0},
        lstm_config={"name": "lstm", "dim": 10, "layer": 2, "dropout": 0.3, "context_lstm": False},
    )
    if parts:
        encoder.word_embedding = nn.Embedding(len(WORDS), SIZES["word"])
        encoder.word_dropout = nn.Dropout(0.25)
        encoder.char_embedding = nn.Embedding(200, SIZES["char"], padding_idx=CHARS["[PAD]"])
        encoder.char_dropout = nn.Dropout(0.15)
        encoder.char_lstm = nn.LSTM(SIZES["char"], SIZES["char"] // 2, bidirectional=True, batch_first=True)
        encoder.pos_embedding = nn.Embedding(1100, SIZES["pos"])
        encoder.pos_dropout = nn.Dropout(0.2)
        width += sum(SIZES.values())
    encoder.lstm = nn.LSTM(width, 5, num_layers=2, bidirectional=True, dropout=0.3, batch_first=True)
    encoder.reduce_dim = nn.Linear(10, bert.config.hidden_size)
    return encoder


def published_model(kind: str, tensors: Mapping[str, Tensor], encoder: Any) -> Any:
    """A published model of this class with the tensors of its head by their published names."""
    score_setting = {"tri_affine": True, "dp": 0.1, "att_dim": 8, "no_tri_mask": False, "reduce_last": False}
    score_setting |= {"scale": "none", "init_std": 0.01, "layer_norm": False}
    model = stand_in(
        kind,
        encoder=encoder,
        parser_list=nn.ModuleList([stand_in("TriAffineParser", dropout=0.1, mask=True)]),
        score_setting=score_setting,
        loss_config={"name": "ce", "na_weight": 1.0},
        max_span_count=5,
        act="relu",
    )
    attach(model, tensors)
    return model


@contextmanager
def published_modules() -> Iterator[None]:
    """The time in which the published classes can be imported, as pickling them needs it."""
    names = {".".join(module.split(".")[:depth]) for module in CLASSES.values() for depth in (1, 2)}
    assert not names & set(sys.modules)
    sys.modules |= {name: types.ModuleType(name) for name in names}
    try:
        for name, module in CLASSES.items():
            setattr(sys.modules[module], name, STAND_INS[name])
        yield
    finally:
        for name in names:
            del sys.modules[name]


def save_published(model: Any, path: Path) -> Path:
    """Saves as the published training does."""
    with published_modules():
        torch.save(model, path)
    return path
