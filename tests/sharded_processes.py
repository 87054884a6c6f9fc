"""What each of several processes that share one model (FSDP) does: python sharded_processes.py FOLDER

The training goes on from the checkpoint in FOLDER, where there is one. accelerate shards over GPUs only: here its
processes on the CPU are passed off as such.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import accelerate.state
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor

from tests.micro_training import micro_trainer
from tests.two_processes import TWENTY, TWENTY_RECORDS, losses, written_by_this_process

# Full tensors, shared by both stages: their gradients do not come by autograd's usual way.
CONFIG = {"triaffine_rank": None, "share_triaffine": True}
# Adam makes much of small differences when it learns fast.
RATES = dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), 0.003)
TRAINING = {**TWENTY, **RATES, "optim": "adamw_torch", "eval_strategy": "steps", "eval_steps": 10}
SAVED = {"save_strategy": "steps", "save_steps": 10, "load_best_model_at_end": True, "metric_for_best_model": "loss"}


def shard_on_the_cpu() -> None:
    join_processes = accelerate.state.PartialState.__init__

    def join(self: Any, *arguments: Any, **options: Any) -> None:
        join_processes(self, *arguments, **options)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    accelerate.state.PartialState.__init__ = join


def main() -> None:
    shard_on_the_cpu()
    folder = Path(sys.argv[1])
    written = written_by_this_process(folder)
    options = {**TRAINING, **SAVED, "per_device_train_batch_size": 4, "save_total_limit": 5}
    trainer = micro_trainer(folder, TWENTY_RECORDS, TWENTY_RECORDS[:7], CONFIG, **options)
    trainer.train(resume_from_checkpoint=True)
    result = {
        "processes": trainer.accelerator.num_processes,
        "sharded": all(isinstance(parameter, DTensor) for parameter in trainer.model.parameters()),
        "metrics": trainer.evaluate(),
        "losses": losses(trainer),
    }
    trainer.save_model()
    result["written"] = sorted(written)
    (folder / f"process_{os.environ['RANK']}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
