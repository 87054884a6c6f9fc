"""Entities of real sentences, then a whole training on the embedded corpus: train, score, save, load, find entities.

    python -m modeling_triaffine.demo    # `make demo` in a clone

Nothing is downloaded: models, corpus, tokenizer and encoder come from the package. The corpus and the trained model are
in `outputs/demo/corpus` and `outputs/demo/model`, which every run makes anew.
"""

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import metadata_load

from . import NestedNERPipeline
from .commands import main as run_command
from .data import load_texts
from .data.demo import write_demo_corpus
from .errors import ending_plainly
from .installed_models import installed_models

CORPUS, MODEL = Path("outputs/demo/corpus"), Path("outputs/demo/model")
SHOWN, LINE = 3, 90  # sentences, and their characters; longer ones would be drawn in pieces


def main() -> None:
    torch.set_num_threads(1)  # matrices this small gain nothing from threads, which wait for each other
    for name, path in installed_models().items():
        print(f"The model {name!r} of the package:\n")
        card: Any = metadata_load(path / "README.md")
        draw_all(path, (example["text"] for example in card["widget"]))
    train()
    print("Loaded again, the model finds nested entities. It knows invented names only:\n")
    by_entities = sorted(load_texts(CORPUS)["test"], key=lambda text: -len(text["entities"]))
    draw_all(MODEL, [text["text"] for text in by_entities if len(text["text"]) <= LINE][:SHOWN])


def draw_all(model: Path, texts: Iterable[str]) -> None:
    """Draws what a model finds in sentences that it was not trained on."""
    find_entities = NestedNERPipeline(model)
    for text in texts:
        print(find_entities.draw(text), end="\n\n")


def train() -> None:
    print(
        "A training on a corpus of 1,500 sentences with invented names; those in validation and test sentences never "
        "occur in training sentences.\n"
    )
    for folder in (CORPUS, MODEL):
        shutil.rmtree(folder, ignore_errors=True)
    write_demo_corpus(CORPUS)
    started = time.perf_counter()
    card = ["--dataset_name", "made-up demo corpus", "--language", "en", "--license", "apache-2.0"]
    paths = ["--train_file", str(CORPUS), "--output_dir", str(MODEL)]
    run_command(["train", "--recipe", "demo", *paths, *card, "--do_predict"])
    print(f"\nTrained, scored and saved in {time.perf_counter() - started:.0f} s: {MODEL}")


if __name__ == "__main__":
    with ending_plainly():  # which prints drawings on a terminal of any encoding
        main()
