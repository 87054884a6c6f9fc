"""Published checkpoints, pickled from stand-in classes: read without running them, and with the same scores."""

import json
import os
import shutil
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import BertModel

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.conversion import CORPORA, CheckpointError, convert_published
from tests.helpers.encoders import save_encoder
from tests.reference import GOLDEN, load_golden

LABELS = ["DNA", "RNA", "protein"]

WITHOUT_CROSS_SPAN = "ablation_g_triaffine_no_cross"  # a file of golden arrays, as the others in `MODELS`
MODELS = {"full_shared": "SpanAttModelV3", "full_separate": "SpanAttModelV3", WITHOUT_CROSS_SPAN: "SpanModel"}
GOLDEN_MLPS = {  # name of a golden array → published name; of MLPs and linear layers the beginnings
    "mlp_attn_head": "parser_list.0.linear_h",
    "mlp_attn_tail": "parser_list.0.linear_t",
    "mlp_attn_token": "parser_list.0.linear_m",
    "mlp_score_head": "parser_list.0.linear_h1",
    "mlp_score_tail": "parser_list.0.linear_t1",
    "mlp_value_token": "parser_list.0.linear_m1",
    "mlp_cross_attn_head": "linear_h2",
    "mlp_cross_attn_tail": "linear_t2",
    "mlp_cross_attn_span": "linear_s2",
    "mlp_cross_score_head": "linear_h3",
    "mlp_cross_score_tail": "linear_t3",
    "mlp_cross_value_span": "linear_s3",
}
GOLDEN_TENSORS = {
    "W": "parser_list.0.parser0.weight",
    "V": "parser_list.0.parser1.weight",
    "W_cross": "span_triaffine.weight",
    "V_cross": "final_parser.weight",
    "label_bias": "parser_list.0.uni",
    "label_bias_cross": "final_uni",
}


def published_tensors(name: str) -> dict[str, torch.Tensor]:
    """The weights of a file of golden arrays by their published names."""
    with np.load(GOLDEN / f"{name}.npz") as archive:
        arrays = {name: torch.from_numpy(archive[name]).float() for name in archive.files}
    names = dict(GOLDEN_TENSORS)
    for array, mlp in GOLDEN_MLPS.items():
        parts = [(layer, kind) for layer in (0, 1) for kind in ("weight", "bias")]
        names |= {f"{array}_layer{layer}_{kind}": f"{mlp}.layers.{layer}.{kind}" for layer, kind in parts}
    return {published: arrays[array] for array, published in names.items() if array in arrays}


# ---- The published classes, which can be imported only while a checkpoint is saved ----

CLASSES = {
    "SpanAttModelV3": "model.span_att_v2",
    "SpanAttModelV2": "model.span_att_v2",
    "SpanModel": "model.span",
    "TextEncoder": "model.text_encoder",
    "MLP": "model.mlp",
    "TriAffineParser": "model.parser",
    "LinearTriParser": "model.parser",
}
STAND_INS: dict[str, Any] = {name: type(name, (nn.Module,), {"__module__": module}) for name, module in CLASSES.items()}
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


def attach(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts tensors into a module by their dotted names; modules on the way are made."""
    for name, tensor in tensors.items():
        *path, last = name.split(".")
        place = module
        for part in path:
            if part not in place._modules:
                place.add_module(part, stand_in("MLP"))
            place = place._modules[part]
        place.register_parameter(last, nn.Parameter(tensor))


def published_encoder(pretrained: str, parts: bool) -> Any:
    """The published text encoder of random weights, with word, part-of-speech and character embeddings on wish."""
    torch.manual_seed(0)
    bert = BertModel.from_pretrained(pretrained)
    positions = torch.arange(bert.config.max_position_embeddings).unsqueeze(0)
    bert.embeddings.register_buffer("position_ids", positions)  # saved in those days
    width = bert.config.hidden_size
    encoder = stand_in(
        "TextEncoder",
        bert_list=nn.ModuleList([bert]),
        bert_additional_config={"bert_before_lstm": True, "subword_aggr": "max", "bert_output": "last", "reinit": 0},
        lstm_config={"name": "lstm", "dim": 10, "layer": 2, "dropout": 0.3, "context_lstm": False},
    )
    if parts:
        encoder.word_embedding = nn.Embedding(len(WORDS), SIZES["word"])
        encoder.char_embedding = nn.Embedding(200, SIZES["char"], padding_idx=CHARS["[PAD]"])
        encoder.char_lstm = nn.LSTM(SIZES["char"], SIZES["char"] // 2, bidirectional=True, batch_first=True)
        encoder.pos_embedding = nn.Embedding(1100, SIZES["pos"])
        width += sum(SIZES.values())
    encoder.lstm = nn.LSTM(width, 5, num_layers=2, bidirectional=True, dropout=0.3, batch_first=True)
    encoder.reduce_dim = nn.Linear(10, bert.config.hidden_size)
    return encoder


def published_model(pretrained: str, name: str, parts: bool = False) -> Any:
    """A published model with the head of a file of golden arrays."""
    model = stand_in(
        MODELS[name],
        encoder=published_encoder(pretrained, parts),
        parser_list=nn.ModuleList([stand_in("TriAffineParser", dropout=0.1, mask=True)]),
        score_setting={"tri_affine": True, "dp": 0.1, "att_dim": 8, "no_tri_mask": False, "scale": "none"},
        loss_config={"name": "ce", "na_weight": 1.0},
        max_span_count=5,
        act="relu",
    )
    attach(model, published_tensors(name))
    return model


@contextmanager
def published_modules() -> Iterator[None]:
    """The time in which the published classes can be imported, as pickling them needs it."""
    names = {".".join(module.split(".")[:depth]) for module in CLASSES.values() for depth in (1, 2)}
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setitem(sys.modules, name, types.ModuleType(name))
        for name, module in CLASSES.items():
            setattr(sys.modules[module], name, STAND_INS[name])
        yield


def save_published(model: Any, path: Path) -> Path:
    """Saves as the published training does."""
    with published_modules():
        torch.save(model, path)
    return path


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> str:
    """A tiny encoder as wide as the words of the golden arrays."""
    return save_encoder("bert", tmp_path_factory.mktemp("pretrained"), hidden_size=32)


@pytest.fixture
def small(pretrained):
    """A published model without the cross-span stage."""
    return published_model(pretrained, WITHOUT_CROSS_SPAN)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("vocabularies")
    for name, numbers in (("word2id", WORDS), ("pos2id", POS), ("char2id", CHARS)):
        (folder / f"{name}.json").write_text(json.dumps(numbers), encoding="utf-8")
    return folder


# ---- Scores ----


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_the_published_implementation(pretrained, tmp_path, name):
    path = save_published(published_model(pretrained, name), tmp_path / "best_epoch.pth")
    head = convert_published(path, pretrained, LABELS)[0].head.double()
    reference, inputs, expected = load_golden(name, axis="query")
    output, wanted = head(inputs["h"], inputs["lengths"]), reference(inputs["h"], inputs["lengths"])
    torch.testing.assert_close(output.span_logits, wanted.span_logits, rtol=1e-12, atol=1e-12)
    if name != WITHOUT_CROSS_SPAN:
        assert torch.equal(output.candidates, expected["topm_row_major"])
        torch.testing.assert_close(output.logits, expected["p_cross_official"], rtol=1e-9, atol=1e-9)
    assert (head.config.cross_span, head.config.cross_span_axis) == (name != WITHOUT_CROSS_SPAN, "query")


def published_words(encoder: nn.Module, batch: dict, ids: dict) -> torch.Tensor:
    """Word representations by torch's own bidirectional LSTMs, put together in the published order."""
    states = encoder.bert_list[0](
        batch["input_ids"], batch["attention_mask"], token_type_ids=batch["token_type_ids"]
    ).last_hidden_state
    index, lengths = batch["word_index"], batch["num_words"]
    words = torch.stack(
        [
            torch.stack([states[row][index[row] == word].amax(0) for word in range(count)])
            for row, count in enumerate(lengths.tolist())
        ]
    )
    characters = ids["chars"].flatten(0, 1)
    sizes = (characters != CHARS["[PAD]"]).sum(-1)
    packed = pack_padded_sequence(encoder.char_embedding(characters), sizes, batch_first=True, enforce_sorted=False)
    spelled, _ = pad_packed_sequence(encoder.char_lstm(packed)[0], batch_first=True)
    last = spelled[torch.arange(len(sizes)), sizes - 1].unflatten(0, ids["chars"].shape[:2])
    parts = [words, encoder.pos_embedding(ids["pos"]), encoder.word_embedding(ids["words"]), last]
    return encoder.reduce_dim(encoder.lstm(torch.cat(parts, dim=-1))[0])


@torch.no_grad()
def test_words_are_represented_as_published(pretrained, vocabularies, tmp_path):
    """Embeddings in the vocabulary's new order, inputs of the BiLSTM in ours, characters read at the last one."""
    published = published_model(pretrained, WITHOUT_CROSS_SPAN, parts=True)
    path = save_published(published, tmp_path / "best_epoch.pth")
    model, processor = convert_published(path, pretrained, LABELS, vocabularies, context="previous_sentence")
    sentences = [["the", "gene", "binds"], ["a", "thing", "unheard"]]
    tags = [["X", "NOUN", "VERB"], ["NOUN", "NOUN", "VERB"]]
    batch = processor(words=sentences, pos=tags)
    length = max(len(word) for words in sentences for word in words)
    ids = {
        "words": [[WORDS.get(word, WORDS["[UNK]"]) for word in words] for words in sentences],
        "pos": [[POS.get(tag, POS["[UNK]"]) for tag in of_sentence] for of_sentence in tags],
        "chars": [
            [[CHARS.get(c, CHARS["[UNK]"]) for c in w] + [CHARS["[PAD]"]] * (length - len(w)) for w in words]
            for words in sentences
        ],
    }
    encoder = published.encoder.double().eval()
    expected = published_words(encoder, batch, {part: torch.tensor(numbers) for part, numbers in ids.items()})
    actual, _ = model.double().represent_words(**batch)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    assert (model.config.context, model.config.char_readout) == ("previous_sentence", "last_character")


# ---- Nothing is executed ----


class Bomb:
    """Calls a function when it is unpickled."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


def test_a_checkpoint_is_never_run(small, pretrained, tmp_path):
    call = shutil.copytree, pretrained, str(tmp_path / "made")
    for place in (small, small.encoder, small.parser_list[0]):
        place.extra = [Bomb(*call), {"eval": Bomb(*call)}]
    path = save_published(small, tmp_path / "best_epoch.pth")
    model, _ = convert_published(path, pretrained, LABELS)
    assert not (tmp_path / "made").exists()
    assert not any(name == "model" or name.startswith("model.") for name in sys.modules)
    assert torch.equal(model.head.label_bias, small.parser_list[0].uni)
    with pytest.raises(FileExistsError), published_modules():  # what torch itself would have done
        torch.load(path, weights_only=False)
    assert (tmp_path / "made").is_dir()
    small.extra = Bomb(os.mkdir, str(tmp_path / "called"))  # of the operating system itself
    with pytest.raises(CheckpointError, match=r"best_epoch\.pth .*a saved model does not need"):
        convert_published(save_published(small, path), pretrained, LABELS)
    assert not (tmp_path / "called").exists()


# ---- What is refused ----


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda model: setattr(model, "__class__", STAND_INS["SpanAttModelV2"]),
            r"model\.span_att_v2\.SpanAttModelV2, .*SpanAttModelV3",
        ),
        (
            lambda model: setattr(model.parser_list[0], "__class__", STAND_INS["LinearTriParser"]),
            r"scorer is LinearTriParser, .*only TriAffineParser",
        ),
        (lambda model: model.score_setting.update(scale="sqrt"), r"scale = 'sqrt', .*'none'"),
        (lambda model: model.loss_config.update(name="two"), r"the loss 'two'"),
        (
            lambda model: attach(model, {"parser_list.0.norm_h.weight": torch.ones(3)}),
            r"with another encoder: .*Unexpected key.*parser_list\.0\.norm_h\.weight",
        ),
        (lambda model: delattr(model.encoder, "lstm_config"), r"it lacks 'lstm_config'"),
    ],
)
def test_other_checkpoints_are_refused(small, pretrained, tmp_path, change, message):
    change(small)
    path = save_published(small, tmp_path / "best_epoch.pth")
    with pytest.raises(ValueError, match=message):
        convert_published(path, pretrained, LABELS)


def test_other_and_damaged_files_are_errors(small, pretrained, tmp_path):
    path = save_published(small.state_dict(), tmp_path / "best_epoch.pth")
    with pytest.raises(CheckpointError, match=r"OrderedDict, not a whole model"):
        convert_published(path, pretrained, LABELS)
    save_published(small, path)
    whole = path.read_bytes()
    for content in (whole[:20], whole[: len(whole) // 2], whole[:-30], b"no checkpoint"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"best_epoch\.pth"):
            convert_published(path, pretrained, LABELS)


def test_labels_and_vocabularies_must_fit(small, pretrained, tmp_path):
    path = save_published(small, tmp_path / "small.pth")
    with pytest.raises(ValueError, match=r"3 entity labels.* 2 are named"):
        convert_published(path, pretrained, LABELS[:2])
    path = save_published(published_model(pretrained, WITHOUT_CROSS_SPAN, parts=True), tmp_path / "parts.pth")
    with pytest.raises(ValueError, match=r"word2id\.json, pos2id\.json, char2id\.json"):
        convert_published(path, pretrained, LABELS)
    for content in ("{}", '{"[PAD]": 0, "[UNK]": 2, "a": 3, "b": 4, "c": 5}', '{"[PAD]": 0, "[UNK]": 1}'):
        (tmp_path / "word2id.json").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"word2id\.json .*5 rows for words"):
            convert_published(path, pretrained, LABELS, tmp_path)


def test_the_command_writes_a_whole_model(pretrained, vocabularies, tmp_path, command, monkeypatch):
    published = published_model(pretrained, "full_shared", parts=True)
    path = save_published(published, tmp_path / "best_epoch.pth")
    output = tmp_path / "out" / "model"
    monkeypatch.setitem(CORPORA, "genia", (LABELS, "document"))
    options = [path, output, "--trained-on", "genia", "--encoder", pretrained, "--vocabularies", vocabularies]
    result = command("convert", *options)
    assert result.code == 0
    assert "labels DNA, RNA, protein" in result.out
    model, processor = TriaffineForNestedNER.from_pretrained(output), TriaffineProcessor.from_pretrained(output)
    assert list(model.config.id2label.values()) == [*LABELS, "None"]
    assert processor.context == model.config.context == "document"
    expected = convert_published(path, pretrained, LABELS, vocabularies, "document")[0].state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert NestedNERPipeline(model=model, processor=processor)("the gene binds", threshold=0.0)
