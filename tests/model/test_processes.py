"""A pipeline that has predicted, in other processes: of every start method, and of the libraries that start them.

OpenMP's threads do not live on in a fork: a fork of a process with several would wait for them for ever. So the tests
have two threads, and sentences enough to use both.
"""

from collections.abc import Callable
from functools import partial
from multiprocessing import get_context

import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from modeling_triaffine import NestedNERPipeline
from tests.helpers.portable import near
from tests.helpers.tiny import tiny_pipeline

# Together, operations large enough for torch to divide them among threads.
TEXTS = [f"The IL-{number} gene binds protein, and it is no DNA of number {number}." for number in range(100)]
OPTIONS = {"threshold": 0.3, "batch_size": len(TEXTS)}


@pytest.fixture(scope="module")
def finder(encoder) -> NestedNERPipeline:
    return tiny_pipeline(encoder)


def in_a_pool(method: str) -> Callable:
    def run(finder: NestedNERPipeline) -> list:
        with get_context(method).Pool(1) as pool:
            return pool.apply(finder, (TEXTS,), OPTIONS)

    return run


def in_a_map(finder: NestedNERPipeline) -> list:
    texts = Dataset.from_dict({"text": TEXTS})
    options = {"batched": True, "batch_size": 50, "num_proc": 2}
    return texts.map(lambda rows: {"entities": finder(rows["text"], **OPTIONS)}, **options)["entities"][:]


def in_a_data_loader(finder: NestedNERPipeline) -> list:
    loader = DataLoader(TEXTS, batch_size=50, num_workers=2, collate_fn=lambda texts: finder(texts, **OPTIONS))
    return [entities for batch in loader for entities in batch]


@pytest.mark.parametrize(
    "way",
    [in_a_pool("fork"), in_a_map, in_a_data_loader, in_a_pool("spawn")],
    ids=["fork", "map", "data-loader", "spawn"],
)
def test_a_pipeline_that_has_predicted_runs_in_other_processes(finder, request, way):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(2)
    expected = near(finder(TEXTS, **OPTIONS))
    assert way(finder) == expected
    assert torch.get_num_threads() == 2  # here, nothing has changed
