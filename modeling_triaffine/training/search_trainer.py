"""Hyperparameter search by the Trainer: a new model for each trial, compared by F1 unless asked otherwise."""

from collections.abc import Callable
from typing import Any, cast

from transformers import set_seed
from transformers.trainer_utils import BestRun

from ..model.processing_triaffine import TriaffineProcessor
from .hub_trainer import HubTrainer
from .new_labels import drop_calibration
from .trainer_checks import check_model, check_processor


class SearchTrainer(HubTrainer):
    """The part of [`NestedNERTrainer`] that makes new models, by `model_init`, and searches hyper-parameters."""

    def _first_model(self, model: Any, model_init: Callable[..., Any] | None, seed: int) -> Any:
        """The model that is given, or one by `model_init`: labels and parts must be known before training."""
        if (model is None) == (model_init is None):
            raise ValueError("NestedNERTrainer: give either a model or model_init, a function that creates one.")
        if model is None:
            self.model_init: Any = model_init
            set_seed(seed)
            model = self.call_model_init()
        return model

    def _prepare_model(self, model: Any, processor: TriaffineProcessor, is_trained: bool = True) -> None:
        """Raises ValueError for a model that cannot be trained with this processor."""
        check_model(model, is_trained)
        check_processor(processor, model.config)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            # The Trainer does the same, with a needless warning.
            setattr(model.config, name, getattr(processor.tokenizer, name, None))

    def call_model_init(self, trial: Any = None) -> Any:
        """A new model by `model_init`; raises ValueError for other labels than those of the first one."""
        model: Any = super().call_model_init(trial)
        collator: Any = getattr(self, "data_collator", None)
        if collator is None:  # it is the first one
            return model
        self._prepare_model(model, cast(TriaffineProcessor, self.processing_class))
        drop_calibration(model.config)
        if getattr(collator, "label2id", model.config.label2id) != model.config.label2id:
            raise ValueError(
                f"model_init makes a model with the labels {', '.join(model.config.label2id)}, but batches have those "
                f"of the first one, {', '.join(collator.label2id)}. Give each trial's model the same labels."
            )
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
            ValueError: the trainer was made with a model, or the evaluation has no such metric.
        """
        if self.model_init is None:
            raise ValueError(
                "hyperparameter_search trains a new model in each trial: instead of the model, give the trainer a "
                "function that creates one, model_init=...."
            )
        if compute_objective is None:
            greater = self.args.metric_for_best_model is None or self.args.greater_is_better is not False
            direction = direction or ("maximize" if greater else "minimize")
            compute_objective = self._best_metric
        return super().hyperparameter_search(
            hp_space, compute_objective, n_trials, direction or "minimize", *arguments, **options
        )

    def _best_metric(self, metrics: dict[str, float]) -> float:
        name = f"eval_{(self.args.metric_for_best_model or 'f1').removeprefix('eval_')}"
        if name not in metrics:
            raise ValueError(
                f"The evaluation has no {name} to compare trials by, but {', '.join(metrics)}. Set "
                "metric_for_best_model, or give compute_objective."
            )
        return metrics[name]
