"""NestedNERTrainer: transformers' Trainer, adapted to nested NER.

It adds three learning rates, batches of similar length, a loss averaged over the sentences of an update, evaluation by
entities, and resuming from complete checkpoints only. Everything else is inherited: precision, accumulation,
distributed training, logging and trackers, checkpoints and their rotation, the choice of the best one.
"""

import copy
import dataclasses
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.utils import gather_object
from torch.utils.data import DataLoader
from transformers import TrainingArguments, set_seed
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_utils import BestRun, IntervalStrategy, TrainOutput

from ..data.collator import DataCollatorForNestedNER
from ..model.configuration_triaffine import TriaffineConfig
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import broken_weights
from .arguments import NestedNERTrainingArguments, check_arguments
from .batching import RECORD_IDS, CaseAugmentation, TrainingBatchSampler
from .callbacks import TrainingCallback
from .checkpoints import find_checkpoint, remove_incomplete
from .interruptions import RESUME, DamagedCheckpointError, StoppedError, check_writable, loss_error, weights_error
from .optimization import averaging, build_parameter_groups, choose_optimizer, learning_rates
from .records import Records, as_datasets, plain_records
from .scoring_trainer import ScoringTrainer, check_best_metric

logger = logging.getLogger(__name__)


class NestedNERTrainer(ScoringTrainer):
    """Trains and evaluates a [`TriaffineForNestedNER`] on records (`load_nested_ner`).

    ```python
    trainer = NestedNERTrainer(
        model,
        args,
        processing_class=processor,
        train_dataset=dataset["train"],
        eval_dataset=dataset["validation"],
    )
    trainer.train(resume_from_checkpoint=True)  # resumes a run that was killed
    trainer.save_model()
    ```

    Args:
        model: the model to train; its configuration defines the labels. With `model_init`, a function that makes a new
            one, leave it out: every run then starts from a new model, as `hyperparameter_search` needs it.
        args: a [`NestedNERTrainingArguments`], or plain `TrainingArguments` for one learning rate.
        processing_class: the [`TriaffineProcessor`] of the model, saved with it.
        train_dataset, eval_dataset: records with `tokens` and `entities`, encoded once: data sets, or lists
            of records. Several validation sets are a dictionary, as in `transformers.Trainer`.
        options: further arguments of `transformers.Trainer`. The default collator is [`DataCollatorForNestedNER`];
            `compute_metrics` is called with an [`EntityPrediction`], and adds to the scores of entities.

    Raises:
        ValueError: an option has no effect here, the processor does not fit the model, a data set is a stream or of
            another form, no evaluation computes `metric_for_best_model`, `optimizers` exclude another option, or the
            FSDP configuration would not save a whole model.

    Examples:
        >>> from modeling_triaffine import NestedNERTrainer, load_nested_ner, start_from_recipe
        >>> corpus = load_nested_ner("outputs/demo/corpus")
        >>> model, processor, arguments = start_from_recipe("demo", corpus, "outputs/trained", max_steps=1)
        >>> data = {"train_dataset": corpus["train"], "eval_dataset": corpus["validation"]}
        >>> trainer = NestedNERTrainer(model, arguments, processing_class=processor, **data)
        >>> result = trainer.train()  # doctest: +ELLIPSIS
        {...
        >>> trainer.save_model()
    """

    args: NestedNERTrainingArguments
    model: TriaffineForNestedNER

    def __init__(
        self,
        model: TriaffineForNestedNER | None = None,
        args: NestedNERTrainingArguments | None = None,
        *,
        processing_class: TriaffineProcessor,
        train_dataset: Records | None = None,
        eval_dataset: Records | dict[str, Records] | None = None,
        model_init: Callable[..., TriaffineForNestedNER] | None = None,
        **options: Any,
    ):
        args = NestedNERTrainingArguments() if args is None else args
        check_arguments(args, options)
        if (model is None) == (model_init is None):
            raise ValueError("NestedNERTrainer: give either a model or model_init, a function that creates one.")
        if model_init is not None:  # labels and parts must be known before training
            self.model_init: Any = model_init
            set_seed(args.seed)
            model = cast(TriaffineForNestedNER, super().call_model_init())
        assert model is not None
        _prepare_model(model, processing_class, is_trained=train_dataset is not None)
        train_dataset, eval_dataset = as_datasets(args, train_dataset, eval_dataset, model.config)
        # What a subclass or `compute_metrics` computes is seen at the first evaluation only.
        scores_itself = type(self) is NestedNERTrainer and options.get("compute_metrics") is None
        if scores_itself and train_dataset is not None:
            check_best_metric(args, eval_dataset, model.config)
        args = _arguments_of_one_trainer(args, train_dataset is not None, eval_dataset is not None)
        label2id: Any = model.config.label2id
        collator = DataCollatorForNestedNER(processing_class, label2id, multi_label=model.config.multi_label)
        options["data_collator"] = options.get("data_collator") or collator
        # For progress reports; tensors stay on their device until they are printed.
        self.sentences_seen: torch.Tensor | int = 0
        self.last_loss: torch.Tensor | float = math.nan
        self._update: list[tuple[torch.Tensor, list[str]]] = []  # loss and ids of each batch of the update
        self._sentences: torch.Tensor | int = 0  # of the update, in all processes
        super().__init__(
            model,
            args,
            processing_class=processing_class,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            **options,
        )
        self.model_init = model_init
        if self.is_fsdp_enabled:
            _check_sharding(self.accelerator.state.fsdp_plugin)
        averages = self._own("ema_decay") is not None
        for option, is_given in (("model_init", model_init is not None), ("ema_decay", averages)):
            if is_given and self.optimizer is not None:
                raise ValueError(
                    f"`optimizers` belong to one model and are used as they are, which {option} excludes; leave out "
                    "one of the two. `optim` and `optimizer_cls_and_kwargs` choose an optimizer's class."
                )
        self._callback = TrainingCallback()
        self.add_callback(self._callback)

    # ---- Optimizer ----

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW (or `args.optim`) with the groups of `optimization.py`."""
        if self.optimizer is None:
            trained: Any = self.model if model is None else model
            optimizer_class, options = self.optimizer_cls_and_kwargs or choose_optimizer(self, trained)
            if self._own("ema_decay") is not None:
                optimizer_class = averaging(optimizer_class, self._own("ema_decay"))
            groups = build_parameter_groups(
                trained.named_parameters(),
                learning_rates=learning_rates(self.args),
                weight_decay=self.args.weight_decay,
                decaying=set(self.get_decay_parameter_names(trained)),
            )
            self.optimizer = optimizer_class(groups, **options)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        """As the Trainer's; warns of a warm-up that is as long as the run."""
        if self.args.get_warmup_steps(num_training_steps) >= num_training_steps:
            logger.warning(
                "The learning rates are never reached: the warm-up has %g updates (warmup_steps), the run %d. "
                "Give fewer, or a fraction of all as a number below 1.",
                *(self.args.warmup_steps, num_training_steps),
            )
        return super().create_scheduler(num_training_steps, optimizer)

    # ---- Batches ----

    def get_train_dataloader(self) -> DataLoader[Any]:
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        encoded = self._encode(plain_records(self.train_dataset, "NestedNERTrainer: train_dataset"))
        sampler = TrainingBatchSampler(
            encoded.sizes,
            batch_size=self._train_batch_size,
            seed=seed,
            max_subwords=self._own("max_subwords_per_batch"),
            num_processes=self.args.world_size,
            group_by_length=self.args.train_sampling_strategy == "group_by_length",
            drop_last=self.args.dataloader_drop_last,
        )
        self._callback.sampler = sampler
        collate_records = dataclasses.replace(self.collate_records, with_ids=True)
        records: Sequence[Any] = encoded
        if share := self._own("case_augmentation"):
            records = CaseAugmentation(encoded, share, sampler)
        loader: DataLoader[Any] = self.accelerator.prepare(self._dataloader(records, sampler, collate_records))
        return loader

    def set_initial_training_values(self, args: TrainingArguments, dataloader: DataLoader[Any], *others: Any) -> Any:
        """As the Trainer's, with the epochs that `min_steps` needs; `args` keep what was asked for."""
        if isinstance(args, NestedNERTrainingArguments):
            epochs = args.epochs_for_min_steps(len(dataloader))
            is_raised = epochs > args.num_train_epochs
            self._callback.most_evaluations = math.ceil(args.num_train_epochs) if is_raised else None
            args = copy.copy(args)
            args.num_train_epochs = epochs
        return super().set_initial_training_values(args, dataloader, *others)

    # ---- Loss ----

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], torch.Tensor | int | None]:
        """As the Trainer's; counts the sentences of the update over all processes."""
        batches, num_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._update.clear()
        self._sentences = sum(len(batch["num_words"]) for batch in batches)
        if self.args.world_size > 1:
            self._sentences = self.accelerator.reduce(torch.tensor(self._sentences, device=device), "sum")
        self.sentences_seen += self._sentences
        return batches, num_items

    def training_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], num_items_in_batch: torch.Tensor | int | None = None
    ) -> torch.Tensor:
        """Forward and backward; raises NotFiniteError before an update whose loss is NaN or infinite.

        All sentences of an update have the same weight, however it is divided into batches and processes: the Trainer
        divides the mean loss of a batch by a number that is that of the batches if they are of one size. (With the
        published `loss_reduction="batch"`, a mean over spans, this holds within a batch only.)
        """
        sentences = inputs.pop(RECORD_IDS, [])  # not an input of the model
        self._note_batch(inputs, sentences[0] if sentences else "")
        # Gradients are averaged over the processes, hence the factor.
        self.current_gradient_accumulation_steps: Any = self._sentences / (
            len(inputs["num_words"]) * self.args.world_size
        )
        with self._explaining_faults():  # here, so that the search for a batch size knows the error on every system
            loss = super().training_step(model, inputs, num_items_in_batch)
        self._update.append((loss, sentences))
        if self.accelerator.sync_gradients:
            self._check_loss()
        return loss

    def _check_loss(self) -> None:
        """Raises NotFiniteError in all processes if the loss of this update is NaN or infinite in any of them."""
        loss = torch.stack([loss for loss, _ in self._update]).sum()
        if self.args.world_size > 1:
            loss = self.accelerator.reduce(loss, "mean")
        self.last_loss = loss
        if not torch.isfinite(loss):
            at_fault = [name for loss, sentences in self._update if not torch.isfinite(loss) for name in sentences]
            broken = broken_weights(self.model)
            raise loss_error(self.state.global_step + 1, loss.item(), gather_object(at_fault), broken)

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The mean loss of the batch's sentences; or `compute_loss_func` of the model's output.

        A subclass may have a loss of its own, for training and evaluation: the mean of a batch, as here. As in
        transformers, `compute_loss_func` returns a sum divided by `num_items_in_batch`, the spans of the whole update.
        """
        inputs = {name: value for name, value in inputs.items() if name != RECORD_IDS}
        if self.teacher is not None and "labels" in inputs:
            inputs = {**inputs, "targets": self.teacher.targets(inputs)}
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    # ---- Checkpoints and the finished model ----

    def train(self, resume_from_checkpoint: str | bool | None = None, *arguments: Any, **options: Any) -> TrainOutput:
        """Trains; see `transformers.Trainer.train`.

        Args:
            resume_from_checkpoint: folder of a checkpoint; True or "latest" for the latest complete one in
                `args.output_dir`, or to start from scratch if there is none.

        Raises:
            TrainingFault: the loss is not finite (a FloatingPointError), memory is exhausted (a RuntimeError), the
                output folder cannot be written to (an OSError), the checkpoint is incomplete (a ValueError), or a
                signal stopped it (`enable_jit_checkpoint`).
        """
        output_dir = self.args.output_dir
        if self.args.should_save:
            check_writable(output_dir)
        checkpoint = find_checkpoint(resume_from_checkpoint, output_dir)
        self.is_resumed, self.run_summary = checkpoint is not None, None
        self.is_stopped = False
        if len({Path(found or "").name for found in gather_object([checkpoint])}) > 1:
            raise DamagedCheckpointError(
                f"Not all machines have the same checkpoint in {output_dir}. Give a folder that they share, or train "
                "with save_on_each_node."
            )
        if self.model_init is None:
            _drop_calibration(self.model.config)
        if self.args.should_save:
            remove_incomplete(output_dir, checkpoint)
        if checkpoint is not None:
            logger.info("Resuming from %s.", checkpoint)
        if self.is_fsdp_enabled and self.model is not None:
            plugin: Any = self.accelerator.state.fsdp_plugin
            # By default accelerate takes all modules that must not be split in a `device_map`, embeddings included,
            # which FSDP 2 then shards twice, and fails.
            if plugin.transformer_cls_names_to_wrap is None:
                plugin.transformer_cls_names_to_wrap = layer_classes(self.model.encoder)
        with self._explaining_faults():
            return super().train(checkpoint, *arguments, **options)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves model and processor, by default in `args.output_dir`; raises NotFiniteError for broken weights."""
        self._use_averages()
        is_checkpoint = _internal_call and output_dir is not None
        state: Any = self.state
        broken = broken_weights(self.model)
        if broken:
            what = f"The checkpoint of update {state.global_step}" if is_checkpoint else "The model"
            raise weights_error(what, broken)
        if is_checkpoint and self.args.should_save:
            # An overwritten checkpoint counts as incomplete until the Trainer writes the new state.
            (Path(str(output_dir)) / TRAINER_STATE_NAME).unlink(missing_ok=True)
        with self._explaining_faults():
            super().save_model(output_dir, _internal_call)

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        # At a signal, transformers' callback asks for the end and saves out of turn (`enable_jit_checkpoint`).
        self.is_stopped |= self.control.should_training_stop and not self.control.should_save
        super()._save_checkpoint(model, trial)

    def _finalize_training(self, *arguments: Any) -> TrainOutput:
        if self.is_stopped:  # else the best checkpoint would replace the last one, and the training count as finished
            raise StoppedError(
                f"A signal stopped training at update {self.state.global_step} of {self.state.max_steps}; {RESUME}."
            )
        return super()._finalize_training(*arguments)

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()  # the Trainer writes the state next, which makes the checkpoint complete

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        if self.args.should_save:
            # A pickle that nothing reads and nobody should publish.
            (Path(output_dir or self.args.output_dir) / TRAINING_ARGS_NAME).unlink(missing_ok=True)

    def whole_model(self) -> TriaffineForNestedNER | None:
        """The model or, if it is sharded, a copy with all weights, on the main process only (else None).

        All processes must call this together.
        """
        if not self.is_fsdp_enabled:
            return self.model
        weights = self.accelerator.get_state_dict(self.model)
        if not self.is_world_process_zero():
            return None
        whole = TriaffineForNestedNER(self.model.config)
        whole.load_state_dict(weights)
        place: Any = whole.to
        place(self.args.device)
        return whole

    # ---- Hyper-parameter search ----

    def call_model_init(self, trial: Any = None) -> Any:
        """A new model by `model_init`, with whose labels batches are made."""
        model: Any = super().call_model_init(trial)
        _prepare_model(model, cast(TriaffineProcessor, self.processing_class))
        _drop_calibration(model.config)
        if isinstance(self.data_collator, DataCollatorForNestedNER):
            self.data_collator.label2id = dict(model.config.label2id)
            self.data_collator.multi_label = model.config.multi_label
        return model

    def hyperparameter_search(
        self,
        hp_space: Callable[[Any], dict[str, Any]] | None = None,
        compute_objective: Callable[[dict[str, float]], float] | None = None,
        n_trials: int = 20,
        direction: str | list[str] | None = None,
        *arguments: Any,
        **options: Any,
    ) -> BestRun | list[BestRun]:
        """As the Trainer's, with another default of what is compared; needs `model_init` in place of a model.

        Args:
            hp_space, n_trials, arguments, options: as in `transformers.Trainer`.
            compute_objective: default: `args.metric_for_best_model`, or else F1, of the evaluation.
            direction: default: that in which this metric is better; with a `compute_objective`, "minimize".

        Raises:
            RuntimeError: the trainer was made with a model.
        """
        if compute_objective is None:
            greater = self.args.metric_for_best_model is None or self.args.greater_is_better is not False
            direction = direction or ("maximize" if greater else "minimize")
            compute_objective = self._best_metric
        return super().hyperparameter_search(
            hp_space, compute_objective, n_trials, direction or "minimize", *arguments, **options
        )

    def _best_metric(self, metrics: dict[str, float]) -> float:
        return metrics[f"eval_{(self.args.metric_for_best_model or 'f1').removeprefix('eval_')}"]


def _arguments_of_one_trainer(
    args: NestedNERTrainingArguments, is_trained: bool, is_evaluated: bool
) -> NestedNERTrainingArguments:
    """The arguments with one GPU, and without evaluation if there are no data for it; those given stay as they are."""
    if args.n_gpu > 1:  # torch's DataParallel would cut batches apart
        logger.warning("%d GPUs are visible, and one is used; `accelerate launch` uses all of them.", args.n_gpu)
        args = copy.copy(args)
        args._n_gpu = 1
    evaluates_by_default = isinstance(args, NestedNERTrainingArguments)  # transformers' own refuse it
    if evaluates_by_default and not is_evaluated and args.eval_strategy != "no":
        if is_trained:
            logger.warning("There is no eval_dataset, so no checkpoint is scored, and training ends with the last one.")
        args = copy.copy(args)
        args.eval_strategy, args.load_best_model_at_end = IntervalStrategy.NO, False
    return args


def _prepare_model(model: TriaffineForNestedNER, processor: Any, is_trained: bool = True) -> None:
    """Raises ValueError for a model that cannot be trained, and saved, with this processor.

    Warns of weights that training hardly changes.
    """
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            "NestedNERTrainer: the model has adapters added by `add_adapter`, which checkpoints would not contain. "
            "Wrap its encoder instead: model.encoder = peft.get_peft_model(model.encoder, config)."
        )
    if not hasattr(processor, "check_fits"):  # whose class may be that of remote code
        raise ValueError(
            f"NestedNERTrainer: processing_class is a {type(processor).__name__}; give the model's TriaffineProcessor."
        )
    model.config.validate()  # names may have been changed one by one
    if is_trained and model.dtype in (torch.float16, torch.bfloat16):
        logger.warning(
            "The model's weights are in %s, in which small updates are lost or rounded too much. Load it with "
            "dtype=torch.float32; bf16=True of the arguments then computes in bfloat16.",
            model.dtype,
        )
    processor.check_fits(model.config)
    if processor.context != model.config.context:  # of which one decides for records, the other for raw text
        raise ValueError(
            f"NestedNERTrainer: the model reads the context {model.config.context!r}, and the processor gives raw text "
            f"the context {processor.context!r}. Build the processor with context={model.config.context!r}."
        )
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        # The Trainer does the same, with a needless warning.
        setattr(model.config, name, getattr(processor.tokenizer, name, None))


def _drop_calibration(config: TriaffineConfig) -> None:
    """Removes temperature and thresholds from the configuration of a model that is trained further, with a warning."""
    if config.label_thresholds or config.temperature != 1.0:
        logger.warning("The model's calibration is dropped, because it is not valid after training. Calibrate again.")
        config.temperature, config.label_thresholds = 1.0, None


def _check_sharding(fsdp_plugin: Any) -> None:
    """Raises ValueError unless accelerate's FSDP plugin is of FSDP 2, and saves the whole model instead of shards."""
    kind = getattr(fsdp_plugin.state_dict_type, "name", fsdp_plugin.state_dict_type)
    needed = (("fsdp_version", fsdp_plugin.fsdp_version, 2), ("fsdp_state_dict_type", kind, "FULL_STATE_DICT"))
    for name, value, wanted in needed:
        if value != wanted:
            raise ValueError(
                f"{name} is {value}; this trainer supports FSDP 2 that saves whole models only, because shards cannot "
                f"be loaded as a model. Set {name}: {wanted}, as in examples/accelerate/fsdp.yaml."
            )


def layer_classes(encoder: torch.nn.Module) -> list[str]:
    """The classes of the modules in the encoder's module lists, by name: the layers that FSDP gathers one by one."""
    lists = (module for module in encoder.modules() if isinstance(module, torch.nn.ModuleList))
    layers = (layer for modules in lists for layer in modules)
    containers = torch.nn.ModuleList | torch.nn.ModuleDict
    return sorted({type(layer).__name__ for layer in layers if not isinstance(layer, containers)})
