"""Trains a nested-NER model, scores it and saves it with its card. `--help` lists all options.

    accelerate launch --quiet examples/train.py --recipe genia-minilm --model_name_or_path MiniLM_FOLDER \\
        --train_file genia.train.jsonl --validation_file genia.dev.jsonl --output_dir outputs/genia

A run that was interrupted goes on with the same command and `--resume_from_checkpoint`.
"""

import sys
from pathlib import Path

from modeling_triaffine.scripts import exit_with_message
from modeling_triaffine.training.run import prepare_run, start_logging, train_and_save

RECIPES = Path(__file__).resolve().parents[1] / "hub_configs"


def main() -> None:
    start_logging()
    try:
        run = prepare_run(sys.argv[1:], library=RECIPES)
    except (ValueError, OSError) as error:
        exit_with_message(error)
    train_and_save(run)


if __name__ == "__main__":
    main()
