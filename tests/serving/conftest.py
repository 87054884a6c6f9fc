"""Fixtures of the tests of the service: a tiny model that finds entities without a threshold, too."""

import pytest

from modeling_triaffine import NestedNERPipeline
from tests.helpers.tiny import save_tiny_model


@pytest.fixture(scope="package")
def model(encoder, tmp_path_factory) -> str:
    return str(save_tiny_model(tmp_path_factory.mktemp("model"), encoder, seed=1))


@pytest.fixture(scope="package")
def find_entities(model) -> NestedNERPipeline:
    return NestedNERPipeline(model=model)
