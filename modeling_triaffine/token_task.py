"""What transformers' `pipeline("token-classification", …)` builds when its model is an object.

For the name of a model, transformers reads the pipeline's class from the model's configuration; for an object it goes
by the task alone, and asks for a tokenizer before it looks at the model.
"""

from typing import Any

from transformers import AutoTokenizer, TokenClassificationPipeline
from transformers.pipelines import PIPELINE_REGISTRY

TASK = "token-classification"


class TokenTaskPipeline(TokenClassificationPipeline):
    """Makes a [`NestedNERPipeline`] of our models, and transformers' own pipeline of all others."""

    _load_tokenizer = None  # type: ignore[assignment]  # optional: transformers goes on without one

    def __new__(cls, model: Any, **kwargs: Any) -> Any:
        # Imported here, since the import of these modules may be what registers this class.
        from .model.configuration_triaffine import TriaffineConfig
        from .model.pipeline_triaffine import NestedNERPipeline

        if model.config.model_type == TriaffineConfig.model_type:
            return NestedNERPipeline(model=model, **kwargs)
        if kwargs.get("tokenizer") is None:  # says why transformers could not load it
            kwargs["tokenizer"] = AutoTokenizer.from_pretrained(model.config.name_or_path)
        return TokenClassificationPipeline(model=model, **kwargs)


def register_token_task() -> None:
    """Puts [`TokenTaskPipeline`] in the place of transformers' class for the task, in this process."""
    tasks: dict[str, Any] = PIPELINE_REGISTRY.supported_tasks
    tasks[TASK] = {**tasks[TASK], "impl": TokenTaskPipeline}
