"""What tests of the service share: a tiny model that finds entities without a threshold, too, and an annotator."""

import pytest

from modeling_triaffine import NestedNERPipeline
from tests.helpers.served_model import ANNOTATED, client_of
from tests.helpers.tiny import save_tiny_model

FOUND = [
    {"entity_group": "Person", "score": 0.75, "word": "Joe", "start": 0, "end": 3},
    {"entity_group": "Vehicle", "score": 0.5, "word": "the train", "start": 15, "end": 24},
]


@pytest.fixture(scope="package")
def model(encoder, tmp_path_factory) -> str:
    return str(save_tiny_model(tmp_path_factory.mktemp("model"), encoder, seed=1))


@pytest.fixture(scope="package")
def find_entities(model) -> NestedNERPipeline:
    return NestedNERPipeline(model=model)


@pytest.fixture
def annotator():
    """A client for the requests of annotation tools, to a model that finds two entities in one text."""

    def find(texts, threshold):
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return [FOUND if text == ANNOTATED else [] for text in texts]

    client, batcher = client_of(find, model="owner/name", labels=["Person", "Vehicle"], body_bytes=100_000)
    with batcher:
        yield client
