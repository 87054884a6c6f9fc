"""Faults of a training that are no errors of the program, each told in one paragraph that says what is still whole.

A loss that is no finite number, memory that runs out, a folder that cannot be written to, a damaged checkpoint. The
trainer says through [`FaultWatch`] what it is at; what a whole checkpoint is stands in `checkpoints.py`.
"""

import contextlib
import logging
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import gather_object
from safetensors import SafetensorError
from torch import Tensor

from ..model.checkpoint_triaffine import broken_weights
from . import checkpoints
from .batching import RECORD_IDS

if TYPE_CHECKING:
    from .trainer import NestedNERTrainer

logger = logging.getLogger(__name__)

# The sentences of an update whose loss is no number, and the loss of each batch.
FAILED_UPDATE_FILE = "failed_update.json"
# Parts of the messages of torch, which has no classes for these errors.
OF_MEMORY = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED")
OF_WRITING = ("inline_container.cc", "Parent directory")


class TrainingFault(Exception):  # noqa: N818 - what is at fault is not the program
    """A fault of numbers, memory or disk. Its message is one paragraph; a script ends with it and code 2."""


class NotFiniteError(TrainingFault, FloatingPointError):
    """The loss, or a weight that is to be saved, is no finite number."""


class OutOfMemoryError(TrainingFault, RuntimeError):
    """A batch does not fit into memory."""


class SavingError(TrainingFault, OSError):
    """The output folder does not take what is to be saved."""


class DamagedCheckpointError(TrainingFault, ValueError):
    """A checkpoint to go on from has a file that cannot be read."""


def check_writable(output_dir: str | Path) -> None:
    """Raises SavingError where nothing can be written to the folder, or where it is to be made."""
    existing = Path(output_dir).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:  # it has no name, and leaves nothing behind
            probe.write(b"\0")
            probe.flush()
    except OSError as error:
        reason = f"{existing} is a file" if existing.is_file() else f"{existing}: {error.strerror}"
        raise SavingError(
            f"--output_dir {output_dir} cannot be written to ({reason}). Give another folder, or see to room and the "
            "right to write there."
        ) from error


def check_whole(checkpoint: str) -> None:
    """Raises DamagedCheckpointError where a file of the checkpoint cannot be read."""
    damage = checkpoints.find_damage(checkpoint)
    if damage is not None:
        others = [str(path) for path in checkpoints.list_checkpoints(Path(checkpoint).parent)]
        others = [path for path in others if Path(path) != Path(checkpoint)]
        way = f"Go on from another one: {', '.join(others)}" if others else "There is no other one: start anew"
        raise DamagedCheckpointError(
            f"The checkpoint {checkpoint} is damaged or cut off ({damage}); training cannot go on from it. {way}, and "
            "remove this one."
        )


@contextlib.contextmanager
def saving(what: str, output_dir: str | Path) -> Iterator[None]:
    """Tells of `what` could not be written to the folder, as a SavingError."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        of_torch = isinstance(error, RuntimeError) and not isinstance(error, OSError)
        if isinstance(error, TrainingFault) or (of_torch and not any(sign in str(error) for sign in OF_WRITING)):
            raise
        reason = "not all of it was taken" if of_torch else getattr(error, "strerror", None) or str(error)
        found = checkpoints.list_checkpoints(output_dir)
        whole = (
            f"Whole in it {'is' if len(found) == 1 else 'are'} {', '.join(path.name for path in found)}; the same "
            "command with resume_from_checkpoint goes on from the last."
            if found
            else "It holds no whole checkpoint yet; the same command starts anew."
        )
        raise SavingError(
            f"{what} could not be written to {output_dir} ({reason}{_free_space(output_dir)}). Nothing unfinished is "
            f"taken for a whole. Make room there or give back the right to write, then start again. {whole}"
        ) from error


@dataclass
class Update:
    """The batches of one update of this process.

    Attributes:
        number: the update's, from 1.
        sentences: ids of the records of each batch.
        losses: share of each batch in the loss of the update, as far as they are computed.
    """

    number: int
    sentences: list[list[str]]
    losses: list[Tensor] = field(default_factory=list)

    def batches(self) -> list[dict[str, Any]]:
        """Each batch as JSON holds it, whose numbers are finite: other losses are words."""
        losses = [loss.item() for loss in self.losses]
        return [
            {"loss": loss if math.isfinite(loss) else str(loss), "sentences": ids}
            for loss, ids in zip(losses, self.sentences, strict=True)
        ]


class FaultWatch:
    """Knows which update, batch and sizes a trainer is at, and turns what stops it into a [`TrainingFault`].

    Args:
        trainer: the trainer that reports to it.
    """

    def __init__(self, trainer: "NestedNERTrainer"):
        self.trainer = trainer
        self.update: Update | None = None
        self.last_update: Update | None = None
        self.batch = ""  # what is computed, in words
        self.size = (0, 0)  # sentences and sub-words of it
        self._tells_of_memory = False

    def start_training(self) -> None:
        self.update = self.last_update = None

    def start_update(self, batches: Sequence[dict[str, Any]]) -> None:
        """Takes the ids of the records out of the batches: the model knows no such input."""
        self.last_update = self.update
        self.update = Update(self.trainer.state.global_step + 1, [batch.pop(RECORD_IDS, []) for batch in batches])

    def see_batch(self, inputs: Mapping[str, Any], doing: str) -> None:
        """Remembers the size of a batch, from shapes alone: nothing is asked of the device."""
        self.size = tuple(inputs["input_ids"].shape)
        words = f" and {inputs['labels'].shape[1]} words" if "labels" in inputs else ""
        self.batch = f"in {doing}, at a batch of {self.size[0]} sentences of up to {self.size[1]} sub-words{words}"

    # ---- Numbers ----

    def check_loss(self, loss: Tensor) -> None:
        """Adds the loss of a batch; raises NotFiniteError at the last of an update whose loss is no finite number.

        That is before the update is made: the weights are still those of the update before. All processes raise.
        """
        accelerator, update = self.trainer.accelerator, self.update
        assert update is not None
        update.losses.append(loss)
        if not accelerator.sync_gradients:
            return
        total = torch.stack(update.losses).sum()
        if self.trainer.args.world_size > 1:
            total = accelerator.reduce(total, "sum")
        if not torch.isfinite(total):
            self._tell_of_loss(update, total.item())

    def check_weights(self, what: str) -> None:
        """Raises NotFiniteError before weights that are no finite numbers are saved as `what`."""
        broken = broken_weights(self.trainer.model)
        if broken:
            file = self._write_update(self.update, broken) if self.update is not None else None
            culprit = f" The sentences of the last update are listed in {file}." if file is not None else ""
            raise NotFiniteError(
                f"{what} is not saved: {_count_weights(broken)}.{culprit} {self._remedies()} {self._where_to_go_on()}"
            )

    def _tell_of_loss(self, update: Update, loss: float) -> None:
        """Where the weights are broken already, the update before, or who made the model, is at fault."""
        broken = broken_weights(self.trainer.model)
        culprit = self.last_update if broken else update
        file = None if culprit is None else self._write_update(culprit, broken)
        if culprit is None:
            cause = f"The model that training started with is broken: {_count_weights(broken)}. Start from another one."
        elif broken:
            cause = f"Update {culprit.number}, whose sentences are listed in {file}, broke the weights: "
            cause += f"{_count_weights(broken)}. {self._remedies()}"
        else:
            cause = f"All weights are finite, {_largest_weight(self.trainer.model)}; the sentences of the update are "
            cause += f"listed in {file}. {self._remedies()}"
        raise NotFiniteError(
            f"The loss of update {update.number} is {loss}: training ends before the update is made, and nothing is "
            f"saved of it. {cause} {self._where_to_go_on()}"
        )

    def _write_update(self, update: Update, broken: list[str]) -> Path:
        """Lists the update's sentences over all processes in the output folder."""
        output_dir = Path(self.trainer.args.output_dir)
        batches = gather_object(update.batches())
        report = {"update": update.number, "broken_weights": broken, "batches": batches}
        if self.trainer.args.should_save:
            with self.saving(FAILED_UPDATE_FILE):
                checkpoints.write_json(output_dir / FAILED_UPDATE_FILE, report)
        return output_dir / FAILED_UPDATE_FILE

    def _remedies(self) -> str:
        half = ", or bf16 instead of fp16" if self.trainer.accelerator.mixed_precision == "fp16" else ""
        clip = "" if self.trainer.args.max_grad_norm else ", or max_grad_norm to clip the gradients"
        return (
            "Look at these sentences; where they are sound, take lower learning rates (learning_rate, "
            f"encoder_learning_rate, embeddings_learning_rate){half}{clip}."
        )

    def _where_to_go_on(self) -> str:
        found = checkpoints.list_checkpoints(self.trainer.args.output_dir)
        if not found:
            return "There is no checkpoint to go on from yet."
        return (
            f"The last whole checkpoint is {found[-1]}: resume_from_checkpoint goes on from it with the learning rates "
            "it has; for others, start a new run with it as model_name_or_path, in another output_dir."
        )

    # ---- Memory ----

    @contextlib.contextmanager
    def memory(self) -> Iterator[None]:
        """Tells of memory that runs out within, but not to what lies within: `auto_find_batch_size` must see it."""
        if self._tells_of_memory:
            yield
            return
        self._tells_of_memory = True
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            fault = OutOfMemoryError(self._describe_memory(error))
            self._tell_of_this_process(fault)
            raise fault from error
        finally:
            self._tells_of_memory = False

    def _describe_memory(self, error: BaseException) -> str:
        # The first two sentences say what was tried; the place in torch's own code, before them, helps nobody.
        told = re.sub(r"^\[enforce fail[^]]*\][^.]*\. ", "", str(error)) or type(error).__name__
        reason = ". ".join(told.splitlines()[0].split(". ")[:2]).rstrip(".")
        where = f" {self.batch}" if self.batch else ""
        return f"Memory ran out{where} ({reason}). What needs less: {'; '.join(self._ways_to_need_less())}."

    def _ways_to_need_less(self) -> list[str]:
        """Options that lower the need for memory and are not used yet, those that change no result first."""
        args, config = self.trainer.args, self.trainer.model.config
        sentences, subwords = self.size
        ways = []
        if sentences > 1:
            limit = getattr(args, "max_subwords_per_batch", None) or sentences * subwords
            ways.append(f"max_subwords_per_batch, at less than {limit}")
            ways.append(
                f"a per_device_train_batch_size below {args.per_device_train_batch_size} with as many times more "
                f"gradient_accumulation_steps, and a per_device_eval_batch_size below {args.per_device_eval_batch_size}"
            )
        if not args.gradient_checkpointing:
            ways.append("gradient_checkpointing")
        full = config.triaffine_rank is None and "triaffine" in (config.attention, config.scoring)
        if full and args.world_size == 1 and not getattr(args, "save_memory", False):
            ways.append("save_memory")
        if self.trainer.accelerator.mixed_precision == "no":
            ways.append("bf16")
        if full:
            ways.append("a new model with a low triaffine_rank, such as 64")
        return ways or ["a new model with a smaller triaffine_dim, or sentences cut into shorter ones"]

    # ---- Disk ----

    @contextlib.contextmanager
    def saving(self, what: str) -> Iterator[None]:
        """As the function `saving`; room that unfinished files take is given back."""
        args = self.trainer.args
        try:
            with saving(what, args.output_dir):
                yield
        except SavingError as fault:
            if args.world_size == 1:  # another process may still be writing its part
                shutil.rmtree(checkpoints.incomplete_folder(args.output_dir), ignore_errors=True)
            self._tell_of_this_process(fault)
            raise

    def _tell_of_this_process(self, fault: TrainingFault) -> None:
        """Scripts tell the faults of the first process only, which knows nothing of the others'."""
        args = self.trainer.args
        if args.process_index > 0:
            logger.error("Process %d: %s", args.process_index, fault)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, TrainingFault):
        return False
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or any(sign in str(error) for sign in OF_MEMORY)


def _count_weights(broken: list[str]) -> str:
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"the weight {broken[0]}{more} holds numbers that are not finite"


def _largest_weight(model: torch.nn.Module) -> str:
    # A sharded weight is put together for it, by all processes alike.
    whole = {name: getattr(weight, "full_tensor", lambda w=weight: w)() for name, weight in model.named_parameters()}
    sizes = {name: weight.detach().abs().max().item() for name, weight in whole.items() if weight.numel()}
    name = max(sizes, key=sizes.__getitem__)
    return f"the largest {sizes[name]:.2g} in {name}"


def _free_space(folder: str | Path) -> str:
    try:
        return f"; {shutil.disk_usage(folder).free / 1e6:,.1f} MB are free"
    except OSError:
        return ""
