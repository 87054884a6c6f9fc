"""Entities of real sentences, then a whole training on the embedded corpus: train, score, save, load, find entities.

    python -m modeling_triaffine.demo    # `make demo` in a clone

Nothing is downloaded: models, corpus, tokenizer and encoder come from the package. The trained model is in
`outputs/demo`. Another run replaces `corpus` and `model` there and leaves other files alone.
"""

import argparse
import shutil
import time
from pathlib import Path

import torch
from transformers import AutoModel, AutoProcessor

from . import NestedNERPipeline, draw_entities, load_nested_ner
from .data.alignment import record_as_text
from .data.demo import write_demo_corpus
from .errors import ending_plainly
from .installed_models import installed_models
from .training.interruptions import TrainingFault
from .training.run import prepare_run, start_logging, train_and_save

# Model of the package → sentences for it.
REAL_SENTENCES = {
    "names-en": (
        "The University of California, Berkeley, opened a museum in Oakland.",
        "The mayor of New York City met the Prime Minister of Canada at the United Nations.",
    ),
    "genia": (
        "IL-2 gene expression and NF-kappa B activation through CD28 require 5-lipoxygenase.",
        "The human cyclooxygenase-2 mRNA is induced in peripheral blood T lymphocytes.",
    ),
}
SHOWN, LINE = 3, 90  # sentences, and their characters; longer ones would be drawn in pieces
MARK = "made_by_the_demo.txt"  # a file in the folder of the demo; from any other nothing is removed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output_dir", type=Path, default="outputs/demo", help="new folder, or that of an earlier demo"
    )
    folder = parser.parse_args().output_dir
    with ending_plainly(TrainingFault):
        clear(folder)
        # Matrices this small gain nothing from threads, which on a busy machine wait for each other.
        torch.set_num_threads(1)
        tag_real_sentences()
        train(folder)


def clear(folder: Path) -> None:
    """Makes the folder, or removes from it what an earlier demo made.

    Raises:
        ValueError: there are files in it, and no demo made it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ValueError(f"--output_dir {folder} has files that no earlier demo made; give a new or empty folder.")
    (folder / MARK).write_text("Every run of the demo removes `corpus` and `model` here and creates them again.\n")
    for name in ("corpus", "model"):
        shutil.rmtree(folder / name, ignore_errors=True)


def tag_real_sentences() -> None:
    """Draws what the models of the package find in sentences that they were not trained on."""
    for name, path in installed_models().items():
        print(f"The model {name!r} of the package:\n")
        find_entities = NestedNERPipeline(path)
        for text in REAL_SENTENCES.get(name, ()):
            print(draw_entities(text, find_entities(text)), end="\n\n")


def train(folder: Path) -> None:
    start_logging()
    print(
        "A training on a corpus of 1,500 sentences with invented names; those in validation and test sentences never "
        "occur in training sentences.\n"
    )
    write_demo_corpus(folder / "corpus")
    started = time.perf_counter()
    options = ["--recipe", "demo", "--train_file", str(folder / "corpus"), "--output_dir", str(folder / "model")]
    card = ["--dataset_name", "made-up demo corpus", "--language", "en", "--license", "apache-2.0"]
    train_and_save(prepare_run([*options, *card, "--do_predict"]))
    print(f"\nTrained, scored and saved in {time.perf_counter() - started:.0f} s: {folder / 'model'}")

    print("Loaded again with AutoModel, the model finds nested entities. It knows invented names only:\n")
    model = AutoModel.from_pretrained(folder / "model", trust_remote_code=True)
    processor = AutoProcessor.from_pretrained(folder / "model", trust_remote_code=True)
    find_entities = NestedNERPipeline(model=model, processor=processor)
    test = load_nested_ner(folder / "corpus")["test"]
    by_entities = sorted(test, key=lambda record: -len(record["entities"]))
    texts = [text for text, _ in map(record_as_text, by_entities) if len(text) <= LINE]
    for text in texts[:SHOWN]:
        print(draw_entities(text, find_entities(text)), end="\n\n")


if __name__ == "__main__":
    main()
