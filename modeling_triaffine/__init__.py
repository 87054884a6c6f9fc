"""Nested named entity recognition with the triaffine mechanism, for the Hugging Face stack.

Importing the package loads neither torch nor transformers; a public name is imported when it is first used. It also
registers the model with transformers' Auto classes, which then load its checkpoints without `trust_remote_code`.
"""

from typing import TYPE_CHECKING

from .lazy import on_first_use
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
    **{folder: folder for folder in ("data", "evaluation", "model", "publishing", "training")},
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


__getattr__, __dir__ = on_first_use(__name__, _MODULES)

register_with_transformers()
