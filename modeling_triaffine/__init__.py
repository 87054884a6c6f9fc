"""Nested named entity recognition with the triaffine mechanism, for the Hugging Face stack.

Importing the package loads neither torch nor transformers; a public name is imported when it is first used. It also
registers the model with transformers' Auto classes, which then load its checkpoints without `trust_remote_code`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registration import register_with_transformers
from .version import __version__

if TYPE_CHECKING:
    from .conversion.onnx_predictor import OnnxNestedNER
    from .data.collator import DataCollatorForNestedNER
    from .data.loading import load_nested_ner
    from .evaluation.metric import NestedNERMetric
    from .model.configuration_triaffine import TriaffineConfig
    from .model.modeling_triaffine import TriaffineForNestedNER
    from .model.pipeline_triaffine import NestedNERPipeline
    from .model.processing_triaffine import TriaffineProcessor
    from .training import NestedNERTrainer, NestedNERTrainingArguments, start_from_recipe

__all__ = [
    "DataCollatorForNestedNER",
    "NestedNERMetric",
    "NestedNERPipeline",
    "NestedNERTrainer",
    "NestedNERTrainingArguments",
    "OnnxNestedNER",
    "TriaffineConfig",
    "TriaffineForNestedNER",
    "TriaffineProcessor",
    "__version__",
    "load_nested_ner",
    "start_from_recipe",
]

_MODULES = {
    "DataCollatorForNestedNER": "data.collator",
    "NestedNERMetric": "evaluation.metric",
    "NestedNERPipeline": "model.pipeline_triaffine",
    "NestedNERTrainer": "training",
    "NestedNERTrainingArguments": "training",
    "OnnxNestedNER": "conversion.onnx_predictor",
    "TriaffineConfig": "model.configuration_triaffine",
    "TriaffineForNestedNER": "model.modeling_triaffine",
    "TriaffineProcessor": "model.processing_triaffine",
    "load_nested_ner": "data.loading",
    "start_from_recipe": "training",
}
_FOLDERS = ("data", "evaluation", "model", "publishing", "training")


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f".{name}", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_with_transformers()
