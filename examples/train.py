"""Trains a nested-NER model, scores it and saves it with its card. `--help` lists all options.

    python examples/train.py --recipe genia-minilm --train_file my_corpus/ --output_dir outputs/mine
    accelerate launch --config_file examples/accelerate/gpu_ddp.yaml examples/train.py …  (several GPUs)

A run that was interrupted goes on with the same command and `--resume_from_checkpoint`.
"""

import sys
from pathlib import Path

from modeling_triaffine.errors import INTERRUPTED, ending_plainly, exit_with_message
from modeling_triaffine.publishing.upload import NotPublishedError
from modeling_triaffine.training.faults import TrainingFault
from modeling_triaffine.training.run import prepare_run, start_logging, train_and_save

RECIPES = Path(__file__).resolve().parents[1] / "hub_configs"


def main() -> None:
    start_logging()
    with ending_plainly():
        run = prepare_run(sys.argv[1:], library=RECIPES)
    try:
        train_and_save(run)
    except (TrainingFault, NotPublishedError) as fault:  # any other error is one of the program, with its traceback
        exit_with_message(fault)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
