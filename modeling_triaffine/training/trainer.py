"""NestedNERTrainer: transformers' Trainer, adapted to nested NER.

It adds three learning rates, batches of similar length, a loss averaged over the sentences of an update, evaluation by
entities, and resuming from complete checkpoints only. Everything else is inherited: precision, accumulation,
distributed training, logging and trackers, checkpoints and their rotation, the choice of the best one.
"""

import contextlib
import copy
import dataclasses
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import datasets
import torch
from accelerate.utils import gather_object
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_utils import EvalLoopOutput, IntervalStrategy, TrainOutput

from ..data.collator import DataCollatorForNestedNER
from ..data.schema import Span
from ..data.windows import Windows
from ..evaluation.prediction import Entities, candidate_spans
from ..evaluation.scoring import candidate_recall, score_entities, without_labels
from ..model.decoding_triaffine import find_entities
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import broken_weights
from .arguments import WITHOUT_EFFECT, NestedNERTrainingArguments, check_arguments, without_effect
from .batching import (
    RECORD_IDS,
    CaseAugmentation,
    EncodedRecords,
    EvaluationBatchSampler,
    RecordCollator,
    TrainingBatchSampler,
    record_name,
)
from .callbacks import TrainingCallback
from .interruptions import (
    check_writable,
    explaining_faults,
    find_checkpoint,
    loss_error,
    remove_incomplete,
    weights_error,
)
from .new_labels import Teacher, drop_calibration
from .optimization import averaging, build_parameter_groups, choose_optimizer, has_average
from .own_metrics import EntityPrediction, prefix_metrics
from .search_trainer import SearchTrainer
from .sharding import check_sharding, choose_sharded_layers
from .trainer_checks import Records, as_datasets, check_best_metric, check_datasets, plain_records

logger = logging.getLogger(__name__)

DATASETS_KEPT = 8  # whose encoded records stay in memory


class NestedNERTrainer(SearchTrainer):
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
            another form, no evaluation computes `metric_for_best_model`, or the FSDP configuration would not save
            a whole model.

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
        for name in WITHOUT_EFFECT.keys() & options.keys():
            if options[name] is not None:
                raise ValueError(without_effect(name))
        check_arguments(args)
        model = cast(TriaffineForNestedNER, self._first_model(model, model_init, args.seed))
        self._prepare_model(model, processing_class, is_trained=train_dataset is not None)
        train_dataset, eval_dataset = as_datasets(train_dataset, eval_dataset)
        check_datasets(args, train_dataset, eval_dataset, model.config)
        # What a subclass or `compute_metrics` computes is seen at the first evaluation only.
        if type(self) is NestedNERTrainer and options.get("compute_metrics") is None:
            check_best_metric(args, eval_dataset, model.config)
        if args.n_gpu > 1:  # torch's DataParallel would cut batches apart
            logger.warning("%d GPUs are visible, and one is used; `accelerate launch` uses all of them.", args.n_gpu)
            args._n_gpu = 1
        evaluates_by_default = isinstance(args, NestedNERTrainingArguments)  # transformers' own refuse it
        if evaluates_by_default and eval_dataset is None and args.eval_strategy != "no":
            logger.warning("There is no eval_dataset, so no checkpoint is scored, and training ends with the last one.")
            args.eval_strategy, args.load_best_model_at_end = IntervalStrategy.NO, False
        label2id: Any = model.config.label2id
        collator = DataCollatorForNestedNER(processing_class, label2id, multi_label=model.config.multi_label)
        options["data_collator"] = options.get("data_collator") or collator
        self.teacher: Teacher | None = None  # as --keep_labels sets it
        # For progress reports; tensors stay on their device until they are printed.
        self.sentences_seen: torch.Tensor | int = 0
        self.last_loss: torch.Tensor | float = math.nan
        self._update: list[tuple[torch.Tensor, list[str]]] = []  # loss and ids of each batch of the update
        self._sentences: torch.Tensor | int = 0  # of the update, in all processes
        self._batch: list[Any] = []  # the current batch: its numbers of sentences and sub-words, its first sentence
        self._encoded_by_dataset: dict[str, EncodedRecords] = {}
        super().__init__(
            model,
            args,
            processing_class=processing_class,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            **options,
        )
        if model_init is not None and (self.optimizer is not None or self.lr_scheduler is not None):
            raise ValueError(
                "`optimizers` belong to one model, but model_init creates others; give optimizer_cls_and_kwargs."
            )
        self.model_init = model_init
        if self.is_fsdp_enabled:
            check_sharding(self.accelerator.state.fsdp_plugin)
        if self.optimizer is not None and self._own("ema_decay") is not None:
            raise ValueError(
                "ema_decay averages weights in the optimizer that this trainer creates, but `optimizers` passes "
                "another one; leave out one of the two. `optim` and `optimizer_cls_and_kwargs` choose an optimizer's "
                "class."
            )
        self._callback = TrainingCallback(self._learning_rates, averages=self._own("ema_decay") is not None)
        self.add_callback(self._callback)
        self.collate_records = RecordCollator(processing_class, self.data_collator)

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
                learning_rates=self._learning_rates,
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

    def _own(self, option: str) -> Any:
        """An option of [`NestedNERTrainingArguments`]; None for plain TrainingArguments."""
        return getattr(self.args, option, None)

    def _use_averages(self) -> None:
        """Puts averaged weights into the model, if the optimizer has any; the next update removes them again."""
        optimizer: Any = self.optimizer
        if callable(getattr(optimizer, "eval", None)):
            optimizer.eval()

    @property
    def _learning_rates(self) -> dict[str, float]:
        """Learning rate of each part of the model; the same for all with plain TrainingArguments."""
        return {
            "encoder": getattr(self.args, "encoder_learning_rate", self.args.learning_rate),
            "words": getattr(self.args, "embeddings_learning_rate", self.args.learning_rate),
            "head": self.args.learning_rate,
        }

    # ---- Batches ----

    def get_train_dataloader(self) -> DataLoader[Any]:
        if self.train_dataset is None:
            raise ValueError("NestedNERTrainer: training needs a train_dataset.")
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        encoded = self._encode(plain_records(self.train_dataset, "train_dataset"))
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

    def get_eval_dataloader(self, eval_dataset: str | datasets.Dataset | None = None) -> DataLoader[Any]:
        own: Any = self.eval_dataset
        dataset = own[eval_dataset] if isinstance(eval_dataset, str) else own if eval_dataset is None else eval_dataset
        if dataset is None:
            raise ValueError("NestedNERTrainer: evaluation needs an eval_dataset.")
        encoded = self._encode(plain_records(dataset, "the dataset to evaluate on"))
        sampler = EvaluationBatchSampler(
            encoded.sizes,
            self.args.eval_batch_size,
            self.args.world_size,
            self.args.process_index,
            max_subwords=self._own("max_subwords_per_batch"),
        )
        return self._dataloader(encoded, sampler, self.collate_records)

    def get_test_dataloader(self, test_dataset: datasets.Dataset) -> DataLoader[Any]:
        return self.get_eval_dataloader(test_dataset)

    def _encode(self, dataset: datasets.Dataset) -> EncodedRecords:
        """The records, long ones in windows, encoded once per dataset."""
        kept, key = self._encoded_by_dataset, dataset._fingerprint
        if key not in kept:
            processor = self.collate_records.processor
            show_progress = self.is_local_process_zero() and not self.args.disable_tqdm
            if len(kept) == DATASETS_KEPT:
                del kept[next(iter(kept))]
            kept[key] = EncodedRecords(processor, Windows(dataset, processor), show_progress)
        return kept[key]

    def _dataloader(
        self, records: Sequence[Any], batch_sampler: Sampler[list[int]], collate_records: RecordCollator
    ) -> DataLoader[Any]:
        return DataLoader(
            cast("Dataset[Any]", records),
            batch_sampler=batch_sampler,
            collate_fn=collate_records,
            num_workers=self.args.dataloader_num_workers,
            multiprocessing_context=self.args.dataloader_multiprocessing_context,
            in_order=self.args.dataloader_in_order,
            prefetch_factor=self.args.dataloader_prefetch_factor,
            persistent_workers=self.args.dataloader_persistent_workers,
            pin_memory=self.args.dataloader_pin_memory and torch.cuda.is_available(),
            # A loader draws the seed of its workers when it starts. Drawn from the global generator, dropout would
            # depend on the number of evaluations before, and a resumed run would differ from an uninterrupted one.
            generator=torch.Generator().manual_seed(self.args.seed),
        )

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
        self._batch[:] = *inputs["input_ids"].shape, *sentences[:1]
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
        """The mean loss of the batch's sentences, or that of `compute_loss_func`, which sees the model's output.

        A subclass may have a loss of its own, for training and evaluation: the mean of a batch, as here.
        """
        if self.teacher is not None and "labels" in inputs:
            inputs = {**inputs, "targets": self.teacher.targets(inputs)}
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    # ---- Evaluation ----

    def evaluation_loop(
        self,
        dataloader: DataLoader[Any],
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Decodes every sentence to entities and scores them against the records' entity lists.

        Called by the Trainer's `evaluate` and `predict`. In the result, `predictions` and `label_ids` are lists of
        entities per record, and the loss is the mean of `compute_loss` over sentences. `candidate_recall` is the share
        of gold among the candidates, for a model with a cross-span stage. Predictions of `unscored_labels` are not
        scored. What `compute_metrics` finds in an [`EntityPrediction`] is added, and replaces metrics of the same name.
        `prediction_loss_only` and `ignore_keys` have no effect.
        """
        encoded: Any = dataloader.dataset
        windows = encoded.windows
        if len(windows) == 0:
            raise ValueError(f"{description}: the dataset is empty, so there is nothing to score.")
        with self._explaining_faults():
            rows, loss = self._predict_rows(dataloader)
        dataset = windows.records
        predictions: Any = windows.join(entities for entities, _ in rows)
        metrics: dict[str, float] = {}
        references: Any = None
        if "entities" in dataset[0]:
            references = [record["entities"] for record in dataset]
            scored = without_labels(predictions, self.unscored_labels(references))
            metrics = {"loss": loss, **score_entities(scored, references).metrics()}
            if self.model.config.cross_span:
                candidates = windows.join_spans(spans for _, spans in rows)
                metrics["candidate_recall"] = candidate_recall(candidates, references)["recall"]
            metrics = prefix_metrics(metrics, metric_key_prefix)
            if self.compute_metrics is not None:
                evaluated: Any = EntityPrediction(scored, references, dataset)
                metrics |= prefix_metrics(self.compute_metrics(evaluated), metric_key_prefix)
        return EvalLoopOutput(predictions=predictions, label_ids=references, metrics=metrics, num_samples=len(dataset))

    def unscored_labels(self, references: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
        """The labels that --keep_labels keeps and that no reference has: the data does not annotate them."""
        kept = [] if self.teacher is None else self.teacher.kept
        annotated = {entity["type"] for entities in references for entity in entities} if kept else set()
        return [name for name in kept if name not in annotated]

    def predict_entities(self, dataset: datasets.Dataset) -> list[Entities]:
        """Entities of each record, in the order of the records: {start, end (exclusive, in words), type, score}."""
        predictions: Any = self.predict(dataset).predictions
        return cast("list[Entities]", predictions)

    def _predict_rows(self, dataloader: DataLoader[Any]) -> tuple[list[tuple[Entities, list[Span]]], float]:
        """Entities and candidates of every window of the records, over all processes, and the mean loss of one."""
        sampler: Any = dataloader.batch_sampler
        records: Any = dataloader.dataset
        model: Any = self.model
        self._use_averages()
        if not self.accelerator._models:  # the model is not on its device yet
            model.to(self.args.device)
        model.eval()
        self.callback_handler.eval_dataloader = dataloader
        found: list[tuple[int, tuple[Entities, list[Span]]]] = []
        losses: list[float] = []
        for batch, rows, inputs in zip(sampler.batches, sampler.rows_that_count, dataloader, strict=True):
            self._batch[:] = *inputs["input_ids"].shape, record_name(records[batch[0]])
            sentences, loss = self._predict_batch(model, inputs)
            # A batch that counts in another process has no rows here.
            found += zip(rows, sentences, strict=False)
            losses.append(loss * len(rows))
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        by_row = dict(gather_object(found))
        total_loss = sum(gather_object(losses))
        return [by_row[row] for row in range(len(by_row))], total_loss / len(by_row)

    def _predict_batch(
        self, model: torch.nn.Module, inputs: dict[str, Any]
    ) -> tuple[Iterator[tuple[Entities, list[Span]]], float]:
        """Entities and candidates in the model's output, and the loss that `prediction_step` computes from it."""
        outputs: list[Any] = []
        watch = model.register_forward_hook(lambda _model, _inputs, output: outputs.append(output))
        try:
            with self.accelerator.autocast(), torch.no_grad():
                loss, *_ = self.prediction_step(model, inputs, prediction_loss_only=False)
        finally:
            watch.remove()
        if not outputs:
            raise ValueError(
                "prediction_step did not call the model, whose output the entities are read from; call the model in it."
            )
        entities = find_entities(outputs[-1], self.model.config)
        candidates: list[list[Span]] = [[]] * len(entities)
        if self.model.config.cross_span:
            candidates = candidate_spans(outputs[-1])
        return zip(entities, candidates, strict=True), float("nan") if loss is None else loss.item()

    # ---- Checkpoints and the finished model ----

    def train(self, resume_from_checkpoint: str | bool | None = None, *arguments: Any, **options: Any) -> TrainOutput:
        """Trains; see `transformers.Trainer.train`.

        Args:
            resume_from_checkpoint: folder of a checkpoint; True or "latest" for the latest complete one in
                `args.output_dir`, or to start from scratch if there is none.

        Raises:
            TrainingFault: the loss is not finite (a FloatingPointError), memory is exhausted (a RuntimeError), the
                output folder cannot be written to (an OSError), or the checkpoint is incomplete (a ValueError).
        """
        output_dir = self.args.output_dir
        if self.args.should_save:
            check_writable(output_dir)
        checkpoint = find_checkpoint(resume_from_checkpoint, output_dir)
        self.is_resumed, self.run_summary = checkpoint is not None, None
        self.accelerator.wait_for_everyone()  # all have found the same one
        if self.args.should_save:
            remove_incomplete(output_dir, checkpoint)
        if checkpoint is not None:
            logger.info("Resuming from %s.", checkpoint)
        if self.model_init is None:
            drop_calibration(self.model.config)
        if self.is_fsdp_enabled and self.model is not None:
            choose_sharded_layers(self.accelerator.state.fsdp_plugin, self.model.encoder)
        with self._explaining_faults():
            return super().train(checkpoint, *arguments, **options)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves model and processor, by default in `args.output_dir`; raises NotFiniteError for broken weights."""
        self._use_averages()
        if self._own("ema_decay") is not None and (self.optimizer is None or not has_average(self.optimizer)):
            raise ValueError("ema_decay is set, but there are no averaged weights yet; train before saving.")
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

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()  # the Trainer writes the state next, which makes the checkpoint complete

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        if self.args.should_save:
            # A pickle that nothing reads and nobody should publish.
            (Path(output_dir or self.args.output_dir) / TRAINING_ARGS_NAME).unlink(missing_ok=True)

    def _explaining_faults(self) -> contextlib.AbstractContextManager[None]:
        return explaining_faults(self.args.output_dir, self._batch, self.args.process_index)
