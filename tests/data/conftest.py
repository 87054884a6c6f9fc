"""Fixtures of the tests of corpora."""

import os
from pathlib import Path

import pytest
from datasets import DatasetDict

from modeling_triaffine.data import load_nested_ner


@pytest.fixture(scope="session")
def genia_xml() -> Path:
    """GENIA's XML, articles of training and development, which may not be shipped."""
    if not (path := os.environ.get("TRIAFFINE_GENIA_XML")):
        pytest.skip("needs the path of GENIA's XML in TRIAFFINE_GENIA_XML")
    return Path(path)


@pytest.fixture(scope="session")
def genia_corpus(genia_xml) -> DatasetDict:
    """GENIA's training and validation sentences; only to be read."""
    return load_nested_ner(genia_xml)
