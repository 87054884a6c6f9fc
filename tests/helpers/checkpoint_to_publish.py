"""A checkpoint as a training leaves it, and what is on the Hub: for the tests of publishing."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from huggingface_hub import HfApi

from modeling_triaffine import TriaffineForNestedNER
from modeling_triaffine.model.repository_triaffine import REMOTE_CODE_FILES
from modeling_triaffine.publishing import RunSummary
from modeling_triaffine.publishing.model_card import card_of_folder
from tests.helpers.cards import make_evaluation
from tests.helpers.tiny import save_tiny_model

if TYPE_CHECKING:
    from tests.helpers.hub_server import LoopbackHub

NAME = "owner/name"
MODEL_FILES = {"config.json", "model.safetensors", "processor_config.json", "tokenizer.json", "tokenizer_config.json"}
MODEL_FILES |= {"vocabularies.json", "README.md", "run_summary.json"}
CODE_FILES = {*REMOTE_CODE_FILES, "handler.py", "requirements.txt"}
# Files of the training, of trackers and of the user, in alphabetical order.
LEFT_BEHIND = ["checkpoint-3", "log_history.json", "logo.png", "model.onnx", "patients", "training_args.bin"]
SUMMARY = RunSummary(dataset="micro", training_seconds=1.0, evaluation=make_evaluation("DNA"))


def save_checkpoint(folder: Path, encoder: str) -> Path:
    """A tiny model as a training leaves it."""
    save_tiny_model(folder, encoder, ["chars"])
    SUMMARY.save(folder)
    (folder / "README.md").write_text(card_of_folder(folder))
    for name in LEFT_BEHIND:
        (folder / name).mkdir() if name in ("checkpoint-3", "patients") else (folder / name).write_text("{}")
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"pickle")
    return folder


def train_on(checkpoint: Path) -> Path:
    """The checkpoint with other weights."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    with torch.no_grad():
        model.head.label_bias.add_(torch.tensor([0.4, -0.2, 0.1]))
    model.save_pretrained(checkpoint)
    return checkpoint


def files_of(hub: "LoopbackHub", name: str = NAME) -> dict[str, bytes]:
    """What is on the Hub, but for the file that every repository starts with."""
    _, files = hub.repositories[name].resolve("main")
    return {path: content for path, content in files.items() if path != ".gitattributes"}


def api_of(hub: "LoopbackHub") -> HfApi:
    return HfApi(endpoint=hub.endpoint, token=hub.token)
