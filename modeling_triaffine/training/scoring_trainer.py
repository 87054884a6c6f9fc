"""Scoring by the Trainer: batches of encoded records, the entities found in them, and their metrics."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import datasets
import torch
from accelerate.utils import gather_object
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import EvalPrediction, TrainingArguments
from transformers.trainer_utils import EvalLoopOutput, denumpify_detensorize

from ..data.schema import CONTEXT_FIELDS
from ..data.windows import Windows
from ..evaluation.prediction import candidate_spans
from ..evaluation.scores import Scores
from ..evaluation.scoring import Sentences, candidate_recall, score_entities, without_labels
from ..model.configuration_triaffine import TriaffineConfig
from ..model.decoding_triaffine import find_entities
from ..model.kinds_triaffine import WordEntity
from ..model.processing_triaffine import TriaffineProcessor
from ..nesting import Span
from .batching import EncodedRecords, EvaluationBatchSampler, RecordCollator, record_name
from .hub_trainer import HubTrainer
from .interruptions import CurrentBatch, explaining_faults
from .new_labels import Teacher
from .records import plain_records

DATASETS_KEPT = 8  # whose encoded records stay in memory


class EntityPrediction(EvalPrediction):
    """The predicted and the gold entities of a data set: the argument of a trainer's `compute_metrics`.

    It unpacks to both, as transformers' own: `predictions, references = prediction`.

    Attributes:
        predictions: for each record a list of predicted entities {start, end (exclusive, in words), type, score}, but
            for those with a label that is kept of an earlier training and not annotated here.
        references: for each record a list of gold entities {start, end, type}; also by transformers' name, `label_ids`.
        records: the data set, with `tokens`, `id` and all its other columns: `records[3]["tokens"]`.

    Examples:
        >>> from modeling_triaffine.training import EntityPrediction
        >>> def compute_metrics(prediction: EntityPrediction) -> dict[str, float]:
        ...     predicted, gold = prediction
        ...     return {"per_sentence": sum(map(len, predicted)) / len(gold)}
        >>> city = {"start": 0, "end": 1, "type": "City"}
        >>> compute_metrics(EntityPrediction([[city], []], [[city], [city]], records=None))
        {'per_sentence': 0.5}
    """

    def __init__(self, predictions: Sentences, references: Sentences, records: datasets.Dataset):
        entities: Any = (predictions, references)  # arrays in transformers
        super().__init__(*entities)
        self.references = references
        self.records = records


class ScoringTrainer(HubTrainer):
    """The part of [`NestedNERTrainer`] that encodes records, finds their entities and scores these."""

    def __init__(self, model: Any, args: TrainingArguments, *, processing_class: TriaffineProcessor, **options: Any):
        self.teacher: Teacher | None = None  # as --keep_labels sets it
        self._batch = CurrentBatch()  # for errors
        self._encoded_by_dataset: dict[str, EncodedRecords] = {}
        super().__init__(model, args, processing_class=processing_class, **options)
        self.collate_records = RecordCollator(processing_class, self.data_collator)

    def _own(self, option: str) -> Any:
        """An option of [`NestedNERTrainingArguments`]; None for plain TrainingArguments."""
        return getattr(self.args, option, None)

    # ---- Batches ----

    def get_eval_dataloader(self, eval_dataset: str | datasets.Dataset | None = None) -> DataLoader[Any]:
        dataset: Any = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(dataset, str):  # the name of one of several
            dataset = cast("dict[str, Any]", self.eval_dataset)[dataset]
        encoded = self._encode(plain_records(dataset, "NestedNERTrainer: the dataset to evaluate on"))
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
            _check_context(dataset, self.model.config)
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

    # ---- Entities and their scores ----

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
        with self._explaining_faults():
            rows, loss = self._predict_rows(dataloader)
        dataset = windows.records
        predictions: Any = windows.join(entities for entities, _ in rows)
        metrics: dict[str, float] = {}
        references: Any = None
        if dataset[0].get("entities") is not None:  # else it is not labelled
            references = without_labels(dataset["entities"], self.model.config.auxiliary_labels or ())
            scored = without_labels(predictions, self.unscored_labels(references))
            metrics = {"loss": loss, **score_entities(scored, references).metrics()}
            if self.model.config.cross_span:
                candidates = windows.join_spans(spans for _, spans in rows)
                metrics["candidate_recall"] = candidate_recall(candidates, references)["recall"]
            metrics = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
            if self.compute_metrics is not None:
                evaluated: Any = EntityPrediction(scored, references, dataset)
                metrics |= prefix_metrics(self.compute_metrics(evaluated), metric_key_prefix)
        return EvalLoopOutput(predictions=predictions, label_ids=references, metrics=metrics, num_samples=len(dataset))

    def unscored_labels(self, references: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
        """The labels that --keep_labels keeps and that no reference has: the data does not annotate them."""
        kept = [] if self.teacher is None else self.teacher.kept
        annotated = {entity["type"] for entities in references for entity in entities} if kept else set()
        return [name for name in kept if name not in annotated]

    def predict_entities(self, dataset: datasets.Dataset) -> list[list[WordEntity]]:
        """Entities of each record, in the order of the records: {start, end (exclusive, in words), type, score}."""
        predictions: Any = self.predict(dataset).predictions
        return cast("list[list[WordEntity]]", predictions)

    def _predict_rows(self, dataloader: DataLoader[Any]) -> tuple[list[tuple[list[WordEntity], list[Span]]], float]:
        """Entities and candidates of every window of the records, over all processes, and the mean loss of one."""
        sampler: Any = dataloader.batch_sampler
        records: Any = dataloader.dataset
        model: Any = self.model
        self._use_averages()
        if not self.accelerator._models:  # the model is not on its device yet
            model.to(self.args.device)
        model.eval()
        self.callback_handler.eval_dataloader = dataloader
        found: list[tuple[int, tuple[list[WordEntity], list[Span]]]] = []
        losses: list[float] = []
        for batch, rows, inputs in zip(sampler.batches, sampler.rows_that_count, dataloader, strict=True):
            self._note_batch(inputs, record_name(records[batch[0]]))
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
    ) -> tuple[Iterator[tuple[list[WordEntity], list[Span]]], float]:
        """Entities and candidates in the model's output, and the loss that `prediction_step` computes from it."""
        outputs: list[Any] = []
        watch = model.register_forward_hook(lambda _model, _inputs, output: outputs.append(output))
        try:
            with self.accelerator.autocast(), torch.no_grad():
                loss, *_ = self.prediction_step(model, inputs, prediction_loss_only=False)
        finally:
            watch.remove()
        entities = find_entities(outputs[-1], self.model.config)
        candidates: list[list[Span]] = [[]] * len(entities)
        if self.model.config.cross_span:
            candidates = candidate_spans(outputs[-1])
        return zip(entities, candidates, strict=True), float("nan") if loss is None else loss.item()

    def _use_averages(self) -> None:
        """Puts averaged weights into the model, if the optimizer has any; the next update removes them again."""
        optimizer: Any = self.optimizer
        if callable(getattr(optimizer, "eval", None)):
            optimizer.eval()

    def _load_best_model(self) -> None:
        self._use_averages()  # else the next `save_model` would take the last average for the training's weights
        super()._load_best_model()

    def _note_batch(self, inputs: Mapping[str, Any], first: str) -> None:
        """Keeps the size and the first sentence of a batch for errors."""
        self._batch.sentences, self._batch.subwords = inputs["input_ids"].shape
        self._batch.first = first

    def _explaining_faults(self) -> contextlib.AbstractContextManager[None]:
        return explaining_faults(self.args.output_dir, self._batch, self.args.process_index)


def check_best_metric(args: TrainingArguments, evaluation: Any, config: TriaffineConfig) -> None:
    """Raises ValueError for a metric that transformers would miss after the first evaluation only.

    `evaluation` is the validation data, or several by name.
    """
    metric = args.metric_for_best_model
    if metric is None or args.eval_strategy == "no":
        return
    computed: list[str] = []
    for name, data in (evaluation if isinstance(evaluation, dict) else {"": evaluation}).items():
        figures = Scores.metric_names(config.entity_labels)
        if data is not None:  # without such entities it is 0 or undefined, and the first checkpoint stays the best one
            gold = [record["entities"] for record in plain_records(data, "NestedNERTrainer: eval_dataset")]
            best = score_entities(gold, gold).metrics()
            figures = [figure for figure in figures if best.get(figure) == 1]
        figures += ["candidate_recall"] if config.cross_span and "recall" in figures else []
        figures += ["loss"]
        computed += [f"{name}_{figure}" if name else figure for figure in figures]
    if metric.removeprefix("eval_") not in computed:
        raise ValueError(
            f"metric_for_best_model is {metric!r}, which no evaluation computes, or whose entities the validation data "
            f"lacks. Choose one of {', '.join(computed)}, or set it to None and load_best_model_at_end to False."
        )


def _check_context(dataset: datasets.Dataset, config: TriaffineConfig) -> None:
    """Raises ValueError if the model reads the context of sentences and no record has any."""
    context = config.context
    if context != "none" and all(record.get(side) is None for record in dataset for side in CONTEXT_FIELDS):
        raise ValueError(
            f"NestedNERTrainer: the model reads the context of a sentence ({context!r}), and no record has one. Pass "
            f"the data through modeling_triaffine.data.add_context(data, {context!r}, {config.max_subwords})."
        )


def prefix_metrics(metrics: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The metrics as Python numbers, with the prefix before the names that lack it."""
    numbers: dict[str, Any] = denumpify_detensorize(dict(metrics))
    return {name if name.startswith(f"{prefix}_") else f"{prefix}_{name}": value for name, value in numbers.items()}
