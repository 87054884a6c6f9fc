"""The front matter of a model card: what the Hub reads, sorts and shows beside the text."""

from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from .markdown import one_line
from .run_summary import RATIOS, RunSummary

TAGS = ("nested-ner", "named-entity-recognition", "span-classification", "triaffine")
UNNAMED_DATASET = "unnamed data set"


def build_metadata(model_name: str, summary: RunSummary) -> ModelCardData:
    """Metadata of one model repository, as far as the summary knows it.

    Raises:
        ValueError: the model or the base model has a name that no repository can have.
    """
    check_repo_id("model_name", model_name)
    if summary.base_model is not None:
        check_repo_id("base_model", summary.base_model)
    return ModelCardData(
        language=summary.language,
        license=summary.license,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=list(TAGS),
        base_model=summary.base_model,
        # The Hub makes links of these; a title would be a dead one.
        datasets=[summary.dataset] if summary.dataset and is_repo_id(summary.dataset) else None,
        metrics=list(RATIOS),
        widget=[{"text": one_line(example.text)} for example in summary.examples] or None,
        model_name=model_name if summary.evaluation else None,
        eval_results=_eval_results(summary),
    )


def is_repo_id(name: str) -> bool:
    """Whether a repository on the Hub could have this name."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def check_repo_id(argument: str, value: str) -> None:
    """Raises ValueError for what no repository on the Hub could be called."""
    try:
        validate_repo_id(value)
    except HFValidationError as error:
        raise ValueError(
            f"`{argument}` is {value!r}, which cannot be a repository on the Hub ({error}). Give an id such as "
            "'user/name'; a folder on this machine means nothing to the card's readers."
        ) from error


def _eval_results(summary: RunSummary) -> list[EvalResult] | None:
    """The scores of all entities, by which the Hub compares models."""
    if summary.evaluation is None:
        return None
    dataset = one_line(summary.dataset or "") or UNNAMED_DATASET
    return [
        EvalResult(
            task_type="token-classification",
            task_name="Nested named entity recognition",
            dataset_type=dataset,
            dataset_name=dataset,
            dataset_split=one_line(summary.evaluation.split),
            metric_type=ratio,
            metric_value=float(summary.evaluation.scores[ratio]),
        )
        for ratio in RATIOS
    ]
