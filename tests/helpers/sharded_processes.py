"""What each of two processes that share one model (FSDP) does.

It trains as `examples/train.py` does, on the corpus and by the recipe beside FOLDER, and goes on from the checkpoint in
FOLDER where there is one. accelerate shards over GPUs only: here its processes on the CPU are passed off as such.
"""

import json
import os
from pathlib import Path
from typing import Any

import accelerate.state
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor

from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.micro_training import MICRO_CONFIG, MICRO_ENCODER, NO_DROPOUT, task_arguments
from tests.helpers.two_processes import TWENTY, losses, written_by_this_process

ENCODER = {**MICRO_ENCODER, "vocab_size": 300, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Full tensors, shared by both stages: their gradients do not come by autograd's usual way.
TENSORS = {"triaffine_rank": None, "share_triaffine": True}
# Adam makes much of small differences when it learns fast.
RATES = dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), 0.003)
SCORED = {"eval_strategy": "steps", "eval_steps": 10, "metric_for_best_model": "loss"}
SAVED = {"save_strategy": "steps", "save_steps": 10, "save_total_limit": 5}


# 20 updates.
TRAINING = {**TWENTY, **RATES, **SCORED, **SAVED, "optim": "adamw_torch", "use_cpu": True, "disable_tqdm": True}
CONFIG = {"encoder_config": ENCODER, **MICRO_CONFIG, **NO_DROPOUT, **TENSORS}


def train(folder: Path, batch_size: int) -> dict[str, Any]:
    options = ("--per_device_train_batch_size", batch_size, "--resume_from_checkpoint")
    run = prepare_run(task_arguments(folder.parent / "corpus", folder, *options))
    metrics = train_and_save(run)
    return {
        "processes": run.trainer.accelerator.num_processes,
        "sharded": all(isinstance(parameter, DTensor) for parameter in run.trainer.model.parameters()),
        "metrics": metrics,
        "losses": losses(run.trainer),
    }


def shard_on_the_cpu() -> None:
    join_processes = accelerate.state.PartialState.__init__

    def join(self: Any, *arguments: Any, **options: Any) -> None:
        join_processes(self, *arguments, **options)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    accelerate.state.PartialState.__init__ = join


def train_sharded(folder: Path) -> None:
    shard_on_the_cpu()
    written = written_by_this_process(folder)
    result = train(folder, batch_size=4)
    result["written"] = sorted(written)
    (folder / f"process_{os.environ['RANK']}.json").write_text(json.dumps(result))
