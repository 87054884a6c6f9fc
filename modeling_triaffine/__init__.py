"""Nested named entity recognition with the triaffine mechanism, for the Hugging Face stack.

Importing the package registers its classes with transformers' Auto classes, so that checkpoints of it load without
`trust_remote_code`, and tells the model, whose code travels without the package, how it is published.
"""

from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoProcessor

from .data.collator import DataCollatorForNestedNER
from .data.loading import load_nested_ner
from .evaluation.metric import NestedNERMetric
from .model.configuration_triaffine import TriaffineConfig
from .model.modeling_triaffine import TriaffineForNestedNER
from .model.pipeline_triaffine import NestedNERPipeline
from .model.processing_triaffine import TriaffineProcessor
from .publishing import push_model
from .token_task import register_token_task
from .training import NestedNERTrainer, NestedNERTrainingArguments
from .version import __version__

__all__ = [
    "DataCollatorForNestedNER",
    "NestedNERMetric",
    "NestedNERPipeline",
    "NestedNERTrainer",
    "NestedNERTrainingArguments",
    "TriaffineConfig",
    "TriaffineForNestedNER",
    "TriaffineProcessor",
    "__version__",
    "load_nested_ner",
]

AutoConfig.register(TriaffineConfig.model_type, TriaffineConfig)
AutoModel.register(TriaffineConfig, TriaffineForNestedNER)
AutoModelForTokenClassification.register(TriaffineConfig, TriaffineForNestedNER)
AutoProcessor.register(TriaffineConfig, TriaffineProcessor)
register_token_task()
TriaffineForNestedNER.push_repository = push_model
