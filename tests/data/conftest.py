"""Fixtures of the tests of corpora."""

import pytest
from datasets import DatasetDict

from modeling_triaffine.data import load_nested_ner


@pytest.fixture(scope="session")
def genia_corpus(shared, tmp_path_factory) -> DatasetDict:
    """GENIA's training and validation sentences, from JSON lines; only to be read."""
    return load_nested_ner(shared / "data" / "genia", cache_dir=tmp_path_factory.mktemp("cache"))
