"""EndpointHandler: this model as an endpoint of Hugging Face Inference Endpoints.

The endpoint's toolkit must have transformers 5. It reads `handler.py` and `requirements.txt` of the repository that it
serves, builds the handler on the repository's files and calls it with the body of each request:

    {"inputs": "IL-2 gene expression", "parameters": {"threshold": 0.5, "overlap": "nested"}}

The answer is the list of entities that the pipeline finds; for a list of texts a list of such lists. `parameters` may
be left out. A request that cannot be answered raises an error: the endpoint answers it with status 400 and the
message. The model's own code is loaded by transformers, as anywhere else.
"""

from typing import Any

from transformers import pipeline

# `InferenceClient.token_classification` has the last three; `stride` has no effect on spans.
PARAMETERS = ("threshold", "overlap", "ignore_labels", "aggregation_strategy", "stride")


class EndpointHandler:
    """Finds nested entities in the texts of a request.

    Args:
        path: folder of the repository's files.
    """

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
