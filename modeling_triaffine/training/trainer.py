"""NestedNERTrainer: transformers' Trainer, adapted to nested NER.

It adds three learning rates, batches of similar length, a loss averaged over the sentences of an update, evaluation by
entities, checkpoints in time and at a signal, and publishing in one commit. Everything else is inherited: precision,
accumulation, distributed training, logging and trackers, checkpoints and their rotation, the choice of the best one.
"""

import copy
import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.utils import gather_object
from huggingface_hub import CommitInfo
from torch.utils.data import BatchSampler, DataLoader, Dataset
from transformers import EvalPrediction, Trainer, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_utils import EvalLoopOutput, IntervalStrategy, TrainOutput, denumpify_detensorize

from ..acceleration import graphs
from ..data.collator import DataCollatorForNestedNER, Windows
from ..data.records import as_dataset, entity_types
from ..data.schema import CONTEXT_FIELDS
from ..environment import describe_hardware, describe_versions
from ..evaluation.calibration import fit_temperature, score_spans, shared_threshold
from ..evaluation.prediction import candidate_spans
from ..evaluation.scores import candidate_recall, score_entities, summary_metrics, without_labels
from ..files import write_text
from ..model.batches_triaffine import batches_by_length
from ..model.decoding_triaffine import find_entities
from ..model.kinds_triaffine import WordEntity
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import MODEL_OPTIONS, options_of
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import broken_weights
from ..nesting import Span
from ..publishing.model_card import CARD_NAME, build_model_card, repository_name
from ..publishing.run_summary import SUMMARY_FILE, Epoch, RunSummary
from ..publishing.upload import errors_of_hub, publish_folder, saved_before
from .batching import EncodedRecords, Records, TrainingBatchSampler
from .interruptions import NotFiniteError, StoppedError, TrainingCallback, explaining_memory, find_checkpoint, loading
from .new_labels import Teacher
from .optimization import averaging, build_parameter_groups
from .options import OWN_OPTIONS, TRAIN_OPTIONS, TRAINING, RunOptions
from .plan import INEFFECTIVE, NestedNERTrainingArguments, TrainingPlan

logger = logging.getLogger(__name__)


class NestedNERTrainer(Trainer):
    """Trains and evaluates a [`TriaffineForNestedNER`] on records (`load_nested_ner`).

    The first Ctrl+C or SIGTERM ends training after the update, with a checkpoint.

    Args:
        model: the model to train; its configuration defines the labels.
        args: a [`NestedNERTrainingArguments`], or plain `TrainingArguments` for one learning rate.
        processing_class: the [`TriaffineProcessor`] of the model, saved with it.
        train_dataset, eval_dataset: records with `tokens` and `entities`, encoded once: data sets, or lists
            of records. Several validation sets are a dictionary, as in `transformers.Trainer`.
        options: further arguments of `transformers.Trainer`. The default collator is [`DataCollatorForNestedNER`];
            `compute_metrics` is called with the predicted and the gold entities of each record, as an `EvalPrediction`,
            and adds to the scores of entities.

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
    processing_class: TriaffineProcessor

    run_summary: RunSummary | None = None  # of the last training, or of the run that this trainer is part of

    def __init__(
        self,
        model: TriaffineForNestedNER | None = None,
        args: NestedNERTrainingArguments | None = None,
        *,
        processing_class: TriaffineProcessor,
        train_dataset: Records | None = None,
        eval_dataset: Records | dict[str, Records] | None = None,
        **options: Any,
    ):
        args = NestedNERTrainingArguments() if args is None else args
        if getattr(options.get("data_collator"), "__module__", "").startswith("transformers."):
            raise ValueError("NestedNERTrainer: this data_collator knows no spans; give a DataCollatorForNestedNER.")
        if named := [name for name in INEFFECTIVE if options.get(name) or getattr(args, name, None)]:
            raise ValueError(f"NestedNERTrainer: {named[0]} has no effect; leave it out.")
        given: Any = eval_dataset if isinstance(eval_dataset, Mapping) else {"eval_dataset": eval_dataset}
        sets = {name: as_dataset(data, name) for name, data in given.items()}
        train: Any = as_dataset(train_dataset, "train_dataset")
        evaluation: Any = sets if given is eval_dataset else sets["eval_dataset"]
        if evaluation is None and getattr(args, "calibrate_threshold", False):
            raise ValueError("NestedNERTrainer: calibrate_threshold needs validation data; give eval_dataset.")
        args._n_gpu = min(args.n_gpu, 1)  # no DataParallel, which splits batches
        if isinstance(args, NestedNERTrainingArguments) and evaluation is None and args.eval_strategy != "no":
            args = copy.copy(args)  # ours evaluate by default, for which the Trainer requires data
            args.eval_strategy, args.load_best_model_at_end = IntervalStrategy.NO, False
        self.teacher: Teacher | None = None  # set by a run with --keep_labels or --teacher
        self._encoded: dict[str, EncodedRecords] = {}
        self._kept = {data._fingerprint for data in (train, *sets.values()) if data is not None}  # keys of `_encoded`
        self._losses: list[torch.Tensor] = []  # of the batches of the update
        self._sentences = 0  # of the update, in all processes
        self._callback = TrainingCallback()
        options |= {"processing_class": processing_class, "train_dataset": train, "eval_dataset": evaluation}
        with explaining_memory():
            super().__init__(model, args, **options)
        if self.optimizer is not None and getattr(args, "ema_decay", None) is not None:
            raise ValueError("NestedNERTrainer cannot average the weights of your own optimizer; set ema_decay=None.")
        _check_model(self.model, processing_class)
        config: Any = self.model.config
        for name, data in {"train_dataset": train, **sets}.items():
            if data is not None and not entity_types(data, name, config.trained_labels) and data is not train:
                logger.warning("%s has no entities, so its scores are 0, and choose no checkpoint.", name)
        of_labels = {name: getattr(config, name) for name in ("label2id", "multi_label", "auxiliary_labels")}
        default = DataCollatorForNestedNER(processing_class, **of_labels)
        self.data_collator: Any = options.get("data_collator") or default
        self.add_callback(self._callback)
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise ValueError("NestedNERTrainer trains whole models; launch it without FSDP and DeepSpeed.")

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Creates AdamW (or `args.optim`) with the groups of `optimization.py`."""
        if self.optimizer is None:
            trained: Any = self.model if model is None else model
            chosen = self.optimizer_cls_and_kwargs or self.get_optimizer_cls_and_kwargs(self.args, trained)
            optimizer_class, options = chosen
            if (decay := getattr(self.args, "ema_decay", None)) is not None:
                optimizer_class = averaging(optimizer_class, decay)
            rate = self.args.learning_rate
            groups = build_parameter_groups(
                trained.named_parameters(),
                {
                    "head": rate,  # comes first: the Trainer logs the rate of the first group
                    "words": getattr(self.args, "embeddings_learning_rate", rate),
                    "encoder": getattr(self.args, "encoder_learning_rate", rate),
                },
                weight_decay=self.args.weight_decay,
                decaying=set(self.get_decay_parameter_names(trained)),
            )
            self.optimizer = optimizer_class(groups, **options)
        return self.optimizer

    # ---- Batches ----

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        """The batches of an epoch; a subclass may return another sampler, of batches or of row numbers."""
        encoded = self._encode(self.train_dataset) if train_dataset is None else train_dataset
        return TrainingBatchSampler(
            encoded.sizes,
            rows_in_batch=self._train_batch_size,
            seed=self.args.seed if self.args.data_seed is None else self.args.data_seed,
            max_subwords=getattr(self.args, "max_subwords_per_batch", None),
            num_processes=self.args.world_size,
            order=str(getattr(self.args.train_sampling_strategy, "value", self.args.train_sampling_strategy)),
            drop_last=self.args.dataloader_drop_last,
        )

    def get_train_dataloader(self) -> DataLoader[Any]:
        encoded = self._encode(self.train_dataset)
        sampler = self._get_train_sampler(encoded)
        self._callback.sampler = sampler if isinstance(sampler, TrainingBatchSampler) else None
        return self.accelerator.prepare(self._dataloader(encoded, sampler))

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        """The batches of all processes; a subclass may return a sampler of the numbers of all rows."""
        most = getattr(self.args, "max_subwords_per_batch", None)
        return batches_by_length(eval_dataset.sizes, None if most else self.args.eval_batch_size, most)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        dataset: Any = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(dataset, str):  # the name of one of several
            dataset = cast("dict[str, Any]", self.eval_dataset)[dataset]
        encoded = self._encode(as_dataset(dataset, "the dataset to evaluate on"))
        batches = self._get_eval_sampler(encoded)
        if not isinstance(batches, list):  # a sampler, which may draw other numbers each time that it is read
            batches = [*BatchSampler(batches, self.args.eval_batch_size, drop_last=False)]
        return self._dataloader(encoded, batches[self.args.process_index :: self.args.world_size])

    get_test_dataloader = get_eval_dataloader  # type: ignore[assignment]

    def _encode(self, dataset: Any) -> EncodedRecords:
        """The records, long ones in windows; those to train on and to evaluate on are encoded once."""
        if dataset is None:
            raise ValueError("NestedNERTrainer has no data for this. Give `train_dataset` or `eval_dataset`.")
        key = dataset._fingerprint
        if key not in self._encoded:
            context = self.model.config.context
            if context != "none" and all(record.get(side) is None for record in dataset for side in CONTEXT_FIELDS):
                raise ValueError(
                    f"The model reads the context of a sentence ({context!r}), and no record has one. Pass the data "
                    f"through add_context(data, {context!r}, {self.model.config.max_subwords}) of "
                    "modeling_triaffine.data."
                )
            show_progress = self.is_local_process_zero() and not self.args.disable_tqdm
            encoded = EncodedRecords(self.processing_class, dataset, show_progress)
            if key not in self._kept:
                return encoded
            self._encoded[key] = encoded
        return self._encoded[key]

    def _dataloader(self, records: EncodedRecords, sampler: Any) -> DataLoader[Any]:
        makes_batches = isinstance(sampler, list | TrainingBatchSampler | BatchSampler)
        rows = {"sampler": sampler, "batch_size": self._train_batch_size, "drop_last": self.args.dataloader_drop_last}
        return DataLoader(
            cast("Dataset[Any]", records),
            **({"batch_sampler": sampler} if makes_batches else rows),
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            multiprocessing_context=self.args.dataloader_multiprocessing_context,
            in_order=self.args.dataloader_in_order or isinstance(sampler, list),  # an evaluation knows its rows by it
            prefetch_factor=self.args.dataloader_prefetch_factor,
            persistent_workers=self.args.dataloader_persistent_workers,
            pin_memory=self.args.dataloader_pin_memory and torch.cuda.is_available(),
            # A loader draws the seed of its workers when it starts. Drawn from the global generator, dropout would
            # depend on the number of evaluations before, and a resumed run would differ from an uninterrupted one.
            generator=torch.Generator().manual_seed(self.args.seed),
        )

    def set_initial_training_values(self, args: TrainingArguments, dataloader: DataLoader[Any], *others: Any) -> Any:
        """As the Trainer's, with the epochs that `min_steps` needs; `args` keep what was asked for."""
        self._callback.most_evaluations = None
        least = getattr(self.args, "min_steps", None) or 0
        updates = max(1, math.ceil(len(dataloader) / args.gradient_accumulation_steps))
        if args.max_steps <= 0 and math.ceil(updates * args.num_train_epochs) < least:
            self._callback.most_evaluations = math.ceil(args.num_train_epochs)
            args = copy.copy(args)
            args.num_train_epochs = math.ceil(least / updates)
            logger.info("%d epochs, for at least %d updates (min_steps).", args.num_train_epochs, least)
        # Kept, because the Trainer would collect them from all modules in every update.
        self._weights = [*self.model.parameters()]
        self._size = self.model.num_parameters(exclude_embeddings=True)
        is_whole = args.world_size == args.gradient_accumulation_steps == 1 and self.accelerator.scaler is None
        is_recorded = is_whole and graphs.are_wanted(args.device)
        self._graphs = graphs.Graphs(self.model.config, args.device, self._weights) if is_recorded else None
        return super().set_initial_training_values(args, dataloader, *others)

    # ---- Loss ----

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: torch.device) -> tuple[list[Any], Any]:
        """Extends the Trainer's: sums up sentences, requests to stop and due checkpoints over all processes."""
        batches, num_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._losses.clear()
        sentences = sum(len(batch["num_words"]) for batch in batches)
        counts = [sentences, self._callback.has_signal, self._callback.wants_checkpoint(self.args)]
        if self.args.world_size > 1:
            counts = self.accelerator.reduce(torch.tensor(counts, device=device, dtype=torch.int64), "sum").tolist()
        self._sentences, self._callback.is_stopping, self._callback.is_due = counts[0], bool(counts[1]), bool(counts[2])
        return batches, num_items

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any], *others: Any, **options: Any) -> Any:
        """Runs forward and backward; raises NotFiniteError before an update whose loss is NaN or infinite.

        All sentences of an update have the same weight, however it is divided into batches and processes. (With the
        published `loss_reduction="batch"`, a mean over spans, this holds within a batch only.)
        """
        # The Trainer divides the mean loss of the batch by this, and averages gradients over the processes.
        sentences = len(inputs["num_words"]) * self.args.world_size
        self.current_gradient_accumulation_steps: Any = self._sentences / sentences
        # So that the Trainer's `model.train()` does not visit all modules for every batch. A wrapper does not tell:
        # that of several processes stays in training mode when the model in it is evaluated.
        if self.model.training:
            model.__dict__["train"] = lambda: model

        def step(batch: dict[str, Any]) -> dict[str, torch.Tensor]:
            return {"loss": super(NestedNERTrainer, self).training_step(model, batch, *others, **options)}

        try:
            if self._graphs is None or self.teacher is not None:  # a teacher's targets cannot be recorded
                loss = step(inputs)["loss"]
            else:
                optimizer: Any = self.optimizer
                optimizer.train()  # removes averages from the model now, so that the graph does not record it
                loss = self._graphs.run(step, inputs, self.current_gradient_accumulation_steps)["loss"].clone()
        finally:
            model.__dict__.pop("train", None)
        self._losses.append(loss)
        if self.accelerator.sync_gradients:
            self._check_loss()
        return loss

    def _clip_grad_norm(self, model: torch.nn.Module) -> Any:
        return self.accelerator.clip_grad_norm_(self._weights, self.args.max_grad_norm)

    def _check_loss(self) -> None:
        """Raises NotFiniteError in all processes if the loss of this update is NaN or infinite in any of them."""
        loss = self._losses[0] if len(self._losses) == 1 else torch.stack(self._losses).sum()
        if self.args.world_size > 1:
            loss = self.accelerator.reduce(loss, "mean")
        if not math.isfinite(loss.item()):
            broken = broken_weights(self.model)
            cause = f"Since the update before, {_describe(broken)}." if broken else "All weights are finite."
            problem = f"The loss of update {self.state.global_step + 1} is {loss.item()}"
            raise NotFiniteError(f"{problem}, so training stopped before it. {cause}")

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Counts 6 operations for each sub-word and weight, as transformers does, but counts the weights only once."""
        return int(6 * inputs["input_ids"].numel() * self._size)

    def compute_loss(self, model: torch.nn.Module, inputs: dict[str, Any], *others: Any, **options: Any) -> Any:
        """Returns the mean loss of the batch's sentences; a subclass may have another, for training and evaluation."""
        if self.teacher is not None and "labels" in inputs:
            inputs = {**inputs, "targets": self.teacher.targets(inputs)}
        return super().compute_loss(model, inputs, *others, **options)

    # ---- Evaluation ----

    def evaluation_loop(
        self,
        dataloader: DataLoader[Any],
        description: str = "",
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Decodes every sentence to entities and scores them against the records' entity lists.

        In the result, `predictions` and `label_ids` are lists of entities per record, and the loss is the mean of
        `compute_loss` over sentences. What `compute_metrics` returns is added, and replaces metrics of the same
        name. Arguments other than `dataloader` and `metric_key_prefix` have no effect.
        """
        encoded: Any = dataloader.dataset
        windows = encoded.windows if isinstance(encoded, EncodedRecords) else Windows(encoded)
        with explaining_memory():
            rows, loss = self._predict_rows(dataloader)
        dataset: Any = windows.records
        predictions: Any = windows.join(entities for entities, _ in rows)
        metrics: dict[str, float] = {}
        references: Any = None
        if dataset[0].get("entities") is not None:  # else the records have no gold entities
            gold = [record["entities"] for record in dataset]
            references = without_labels(gold, self.model.config.auxiliary_labels or ())
            scored = without_labels(predictions, self.unscored_labels(references))
            metrics = {"loss": loss, **score_entities(scored, references).metrics()}
            if self.model.config.cross_span:
                candidates = windows.join_spans(spans for _, spans in rows)
                metrics["candidate_recall"] = candidate_recall(candidates, references)["recall"]
            if self.compute_metrics is not None:
                evaluated: Any = (scored, references)  # arrays in transformers
                metrics |= denumpify_detensorize(dict(self.compute_metrics(EvalPrediction(*evaluated)) or {}))
            prefix = f"{metric_key_prefix}_"
            metrics = {prefix + name.removeprefix(prefix): value for name, value in metrics.items()}
        return EvalLoopOutput(predictions=predictions, label_ids=references, metrics=metrics, num_samples=len(dataset))

    def unscored_labels(self, references: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
        """Returns the labels that --keep_labels keeps and that no reference has: the data does not annotate them."""
        kept = [] if self.teacher is None else self.teacher.kept
        annotated = {entity["type"] for entities in references for entity in entities} if kept else set()
        return [name for name in kept if name not in annotated]

    def _predict_rows(self, dataloader: DataLoader[Any]) -> tuple[list[tuple[list[WordEntity], list[Span]]], float]:
        """Returns entities and candidates of each window of the records, and the mean loss, of all processes."""
        sampler: Any = dataloader.batch_sampler
        model: Any = self.model
        self._use_averages()
        if not self.accelerator._models:  # the model is not on its device yet
            model.to(self.args.device)
        model.eval()
        self.callback_handler.eval_dataloader = dataloader
        found: list[tuple[int, tuple[list[WordEntity], list[Span]]]] = []
        losses: list[float] = []
        for rows, inputs in zip(sampler, dataloader, strict=True):
            sentences, loss = self._predict_batch(model, inputs)
            found += zip(rows, sentences, strict=True)
            losses.append(loss * len(rows))
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        by_row = dict(gather_object(found))
        total_loss = sum(gather_object(losses))
        return [by_row[row] for row in range(len(by_row))], total_loss / len(by_row)

    def _predict_batch(
        self, model: torch.nn.Module, inputs: dict[str, Any]
    ) -> tuple[Iterator[tuple[list[WordEntity], list[Span]]], float]:
        """Returns the entities and candidates of each row of a batch, and the loss of `prediction_step`."""
        outputs: list[Any] = []
        watch = model.register_forward_hook(lambda _model, _inputs, output: outputs.append(output))
        try:
            with self.accelerator.autocast(), torch.no_grad():
                loss, *_ = self.prediction_step(model, {**inputs, "return_dict": True}, prediction_loss_only=False)
        finally:
            watch.remove()
        entities = find_entities(outputs[-1], self.model.config)
        candidates = candidate_spans(outputs[-1]) if self.model.config.cross_span else [[]] * len(entities)
        return zip(entities, candidates, strict=True), float("nan") if loss is None else loss.item()

    def _use_averages(self) -> None:
        """Puts averaged weights into the model, if the optimizer has any; the next update removes them again."""
        optimizer: Any = self.optimizer
        if callable(getattr(optimizer, "eval", None)):
            optimizer.eval()

    # ---- Checkpoints ----

    def train(self, resume_from_checkpoint: str | bool | None = None, *arguments: Any, **options: Any) -> TrainOutput:
        """Trains as `transformers.Trainer.train`; a TrainingFault says what stopped it (`interruptions.py`).

        True or "latest" resumes from the latest complete checkpoint in `args.output_dir`, if there is one.
        """
        checkpoint = find_checkpoint(resume_from_checkpoint, self.args.output_dir)
        if checkpoint is None and getattr(self.args, "ema_decay", None) is not None:
            self.optimizer = None  # that of an earlier training has other weights than the model
        self.run_summary = None
        teacher = "" if self.teacher is None else self.teacher.model.name_or_path
        objective = f"{teacher}{getattr(self.data_collator, 'flat_annotation', None) or ''}"
        self._callback.prepare(self.args, checkpoint, self.train_dataset, objective)
        if self.model_init is None:
            self.model.config.temperature, self.model.config.label_thresholds = 1.0, None  # those of other weights
        with explaining_memory(), self._callback.noting_signals():
            output = super().train(checkpoint, *arguments, **options)
        self.run_summary = self._summarize(output.metrics["train_runtime"], is_resumed=checkpoint is not None)
        if getattr(self.args, "calibrate_threshold", False):
            self._calibrate()
        return output

    def _calibrate(self) -> None:
        """Sets temperature and threshold of the model, on the validation data."""
        sets: Any = self.eval_dataset if isinstance(self.eval_dataset, dict) else {"": self.eval_dataset}
        records = [record for data in sets.values() for record in data]
        config: Any = self.model.config
        spans = score_spans(self.model, self.processing_class, records, self.args.per_device_eval_batch_size)
        config.temperature = fit_temperature(spans)
        threshold = shared_threshold(spans, config.temperature)
        config.label_thresholds = None if threshold is None else dict.fromkeys(config.entity_labels, threshold)
        found = "the likeliest label" if threshold is None else f"a threshold of {threshold:.3f}"
        logger.info("Calibrated on the validation data: temperature %.3f, %s.", config.temperature, found)

    _load_optimizer_and_scheduler = loading(Trainer._load_optimizer_and_scheduler)
    _load_rng_state = loading(Trainer._load_rng_state)
    _load_from_checkpoint = loading(Trainer._load_from_checkpoint)

    def _determine_best_metric(self, *arguments: Any, **options: Any) -> bool:
        if self.args.load_best_model_at_end and not (self.control.should_save or self.args.save_strategy == "best"):
            return False  # training cannot end with weights that are not saved
        try:  # True saves: also a checkpoint that is due
            return super()._determine_best_metric(*arguments, **options) or self.control.should_save
        except KeyError as error:  # nested_f1, say, of sentences without nested entities
            raise ValueError(error.args[0]) from None

    def _finalize_training(self, *arguments: Any) -> TrainOutput:
        if self._callback.is_stopping:  # else the best checkpoint would replace the last one
            raise StoppedError(
                f"Stopped by a signal at update {self.state.global_step} of {self.state.max_steps}; saved in "
                f"{self.args.output_dir}/checkpoint-{self.state.global_step}: the same command with "
                "--resume_from_checkpoint, in Python trainer.train(resume_from_checkpoint=True), continues from there."
            )
        self._use_averages()  # before the best weights are loaded, for which `save_model` would exchange them
        return super()._finalize_training(*arguments)

    def _save_checkpoint(self, *arguments: Any) -> None:
        try:
            super()._save_checkpoint(*arguments)
        except RuntimeError as error:  # of torch.save
            raise OSError(f"No checkpoint was saved in {self.args.output_dir}. Is the disk full? ({error})") from error

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()  # the Trainer writes the state next, which makes the checkpoint complete

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        if self.args.should_save:
            # A pickle that nothing reads and nobody should publish.
            (Path(output_dir or self.args.output_dir) / TRAINING_ARGS_NAME).unlink(missing_ok=True)

    # ---- The finished model ----

    def _summarize(self, seconds: float, is_resumed: bool) -> RunSummary:
        """Returns the facts of the training that has just ended and took so many seconds; it has no scores yet."""
        best_step = self.state.best_global_step if self.args.load_best_model_at_end else None
        # The card shows one of several validation sets: the one that chose the checkpoint, or else the first.
        prefixes = [f"eval_{name}" for name in self.eval_dataset] if isinstance(self.eval_dataset, dict) else ["eval"]
        chosen = f"eval_{(self.args.metric_for_best_model or '').removeprefix('eval_')}"
        prefix = max((name for name in prefixes if chosen.startswith(f"{name}_")), key=len, default=prefixes[0])
        return RunSummary(
            settings=self.describe_settings(),
            training_table=read_training_table(self.state.log_history, best_step or self.state.global_step, prefix),
            hardware=describe_hardware(),
            versions=describe_versions(),
            training_seconds=seconds,
            resumed=is_resumed,
            processes=self.args.world_size,
            gpus=self.args.world_size if self.args.device.type == "cuda" else 0,
        )

    def describe_settings(self, plan: TrainingPlan | None = None) -> dict[str, Any]:
        """Returns the main settings of the training, and those of model, start and data that are not the defaults."""
        args = self.args
        values = {name: getattr(args, name, None) for name, option in OWN_OPTIONS.items() if option.section == TRAINING}
        values |= {name: getattr(self.model.config, name) for name in MODEL_OPTIONS}
        values |= {} if plan is None else {name: getattr(plan, name) for name in options_of(RunOptions)}
        settings: dict[str, Any] = {}
        for name, value in values.items():
            option = TRAIN_OPTIONS[name]
            is_set = value is not None and value != option.default and not option.is_path
            if option.in_card == "always" or (option.in_card == "if set" and is_set):
                settings[name] = value
        if args.max_steps > 0:
            settings |= {"max_steps": args.max_steps, "num_train_epochs": None, "min_steps": None}
        if args.auto_find_batch_size and self.state.train_batch_size:
            settings["per_device_train_batch_size"] = self.state.train_batch_size
        settings |= {"optim": args.optim, "mixed_precision": self.accelerator.mixed_precision}  # by torch and machine
        return {name: getattr(value, "value", value) for name, value in settings.items()}

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves model, processor and, with a finished model, the facts of its training; refuses broken weights."""
        self._use_averages()
        folder, is_checkpoint = Path(output_dir or self.args.output_dir), _internal_call and output_dir is not None
        if broken := broken_weights(self.model):
            what = f"The checkpoint of update {self.state.global_step}" if is_checkpoint else "The model"
            raise NotFiniteError(f"{what} is not saved: {_describe(broken)}.")
        if self.args.should_save and is_checkpoint:
            # An overwritten checkpoint counts as incomplete until the Trainer writes the new state.
            (folder / TRAINER_STATE_NAME).unlink(missing_ok=True)
        elif self.args.should_save:
            if self.run_summary is not None:
                self.run_summary.save(folder)
            elif self.state.global_step:  # interrupted: what is there is of another run
                (folder / SUMMARY_FILE).unlink(missing_ok=True)
        super().save_model(output_dir, _internal_call)

    # ---- The Hub ----

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Creates the repository if needed, a private one unless `args.hub_private_repo` is False."""
        if self.args.hub_strategy not in ("end", "every_save"):  # the second is the default
            raise ValueError("NestedNERTrainer uploads the finished model and no checkpoints; leave out hub_strategy.")
        self.args.hub_strategy = "end"
        self.args.hub_private_repo = self.args.hub_private_repo is not False if private is None else private
        with errors_of_hub(self.args.hub_model_id or Path(self.args.output_dir).name):
            super().init_hf_repo(token)

    def push_to_hub(  # type: ignore[override]  # `blocking` has no effect: it waits
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        **options: Any,
    ) -> CommitInfo | None:
        """Saves the model and publishes its repository in one commit, without other files of the output folder.

        A new repository is private unless `args.hub_private_repo` is False. `options` are those of
        `create_model_card`, which then writes a new card. Its errors say how to publish the saved model.
        """
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        token = token or self.args.hub_token
        if self.hub_model_id is None:
            self.init_hf_repo(token)
        folder, name = Path(self.args.output_dir), str(self.hub_model_id)
        if options or not (folder / CARD_NAME).exists():
            self.create_model_card(**options)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        revision = revision or self.args.hub_revision
        with saved_before(folder, name):
            return publish_folder(folder, name, commit_message=commit_message, revision=revision, token=token).commit

    def create_model_card(  # type: ignore[override]  # the other arguments are given by name
        self,
        language: str | list[str] | None = None,
        license: str | None = None,
        tags: str | list[str] | None = None,
        model_name: str | None = None,
        finetuned_from: str | None = None,
        dataset_tags: str | list[str] | None = None,
        dataset: str | list[str] | None = None,
        **_: Any,
    ) -> None:
        """Writes the model card and saves its facts for later cards. Arguments that are not listed have no effect."""
        folder, datasets = Path(self.args.output_dir), dataset_tags or dataset
        is_folder = finetuned_from is not None and Path(finetuned_from).is_dir()  # which says nothing to readers
        facts: dict[str, Any] = {
            "language": language,
            "license": license,
            "dataset": datasets if isinstance(datasets, str | None) else ", ".join(datasets),
            "base_model": None if is_folder else finetuned_from,
        }
        summary = self.run_summary or (None if self.state.global_step else RunSummary.load(folder)) or RunSummary()
        self.run_summary = dataclasses.replace(summary, **{name: value for name, value in facts.items() if value})
        if self.is_world_process_zero():
            self.run_summary.save(folder)
            name = self.hub_model_id or (model_name or "").replace(" ", "-") or repository_name(folder)
            card = build_model_card(self.model.config, model_name=name, summary=self.run_summary, tags=tags)
            write_text(folder / CARD_NAME, str(card))


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int, prefix: str = "eval") -> list[Epoch]:
    """The evaluations of a run, from the Trainer's log; `kept_step` is the update whose weights it ended with."""
    rows: list[Epoch] = []
    losses: list[float] = []  # logged since the previous evaluation
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
        if f"{prefix}_loss" in entry:
            scores = {name: entry.get(f"{prefix}_{name}") for name in summary_metrics()}
            loss = sum(losses) / len(losses) if losses else None
            kept = entry["step"] == kept_step
            rows.append(Epoch(round(entry["epoch"], 2), loss, entry[f"{prefix}_loss"], kept, entry["step"], scores))
            losses = []
    return rows


def _check_model(model: TriaffineForNestedNER, processor: Any) -> None:
    """Raises ValueError for a model that cannot be trained, and saved, with this processor."""
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            "NestedNERTrainer: the model has adapters added by `add_adapter`, which checkpoints would not contain. "
            "Wrap its encoder instead: model.encoder = peft.get_peft_model(model.encoder, config)."
        )
    if not (hasattr(model.config, "trained_labels") and hasattr(processor, "check_fits")):
        raise ValueError(
            f"NestedNERTrainer trains a TriaffineForNestedNER with its TriaffineProcessor as `processing_class`, not a "
            f"{type(model).__name__} with a {type(processor).__name__}; `start_from_recipe` makes both."
        )
    model.config.validate()  # names may have been changed one by one
    processor.check_fits(model.config)
    if processor.context != model.config.context:  # of which one decides for records, the other for raw text
        raise ValueError(
            f"NestedNERTrainer: the model reads the context {model.config.context!r}, and the processor gives raw text "
            f"the context {processor.context!r}. Build the processor with context={model.config.context!r}."
        )
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        # The Trainer does the same, with a needless warning.
        setattr(model.config, name, getattr(processor.tokenizer, name, None))


def _describe(broken: Sequence[str]) -> str:
    return f"{len(broken)} weights, such as {broken[0]}, have values that are not finite"
