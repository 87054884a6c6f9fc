"""EndpointHandler: this model as an endpoint of Hugging Face Inference Endpoints, whose toolkit builds it.

A request is `{"inputs": "IL-2 gene expression", "parameters": {"threshold": 0.5}}`, its answer the list of entities
that the pipeline finds; for a list of texts a list of such lists. One that cannot be answered raises an error, which
the endpoint answers with status 400 and the message.
"""

from typing import Any

from transformers import pipeline

# `InferenceClient.token_classification` has the last three; `stride` has no effect on spans.
PARAMETERS = ("threshold", "overlap", "labels", "ignore_labels", "aggregation_strategy", "stride")


class EndpointHandler:
    """Finds nested entities in the texts of requests; `path` is the folder of the repository's files."""

    def __init__(self, path: str = ""):
        self.find_entities = pipeline("token-classification", model=path, trust_remote_code=True)

    def __call__(self, data: dict[str, Any]) -> list[Any]:
        """Entities of `inputs`: {"entity_group", "score", "word", "start", "end"} each, the end exclusive."""
        parameters = data.get("parameters") or {}
        if "inputs" not in data or not isinstance(parameters, dict) or not {*parameters} <= {*PARAMETERS}:
            raise ValueError(
                f'The request must be an object with `inputs`: {{"inputs": "A text."}}, and if wanted `parameters`: '
                f"{', '.join(PARAMETERS)}."
            )
        kept = {name: value for name, value in parameters.items() if name != "stride"}
        return self.find_entities(data["inputs"], **kept)
