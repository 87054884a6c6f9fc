"""Models that are not on this machine: an answer within seconds, whatever the Hub does."""

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import HfApi, constants

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.conversion.onnx_predictor import open_pipeline
from modeling_triaffine.model import repository_triaffine
from modeling_triaffine.training.plan import find_origin
from tests.helpers.tiny import tiny_model, tiny_processor

pytest_plugins = ("tests.helpers.hub_server",)

NAME = "owner/nothing"
LOADERS = {
    "model": TriaffineForNestedNER.from_pretrained,
    "processor": TriaffineProcessor.from_pretrained,
    "configuration": TriaffineConfig.from_pretrained,
    "pipeline": lambda name: NestedNERPipeline(model=name),
    "encoder": lambda name: TriaffineForNestedNER.from_encoder(name, num_labels=3),
    "tokenizer": TriaffineProcessor.from_encoder,
}


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("state", ["closed", "silent"])
def test_an_unreachable_hub_is_an_error_within_seconds(online, monkeypatch, silent_port, state, loader):
    if state == "closed":
        online.stop()
    else:
        endpoint = f"http://127.0.0.1:{silent_port}"
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(online.endpoint, endpoint)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        assert repository_triaffine.HUB_PATIENCE < 5
        monkeypatch.setattr(repository_triaffine, "HUB_PATIENCE", 0.2)
    start = time.monotonic()
    with pytest.raises(ConnectionError, match=f"{NAME} is neither a folder.*{constants.ENDPOINT}") as refusal:
        loader(NAME)
    assert time.monotonic() - start < 8  # the Hub's client alone waits for 10
    assert "\n" not in str(refusal.value)


def test_training_asks_the_hub_once(online):
    plan: Any = SimpleNamespace(
        training=SimpleNamespace(resume_from_checkpoint=None), model=SimpleNamespace(model_name_or_path=NAME)
    )
    with pytest.raises(FileNotFoundError, match=f"no model {NAME}:.*HF_TOKEN"):
        find_origin(plan)
    assert len(online.requests) == 1


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
def test_a_name_that_is_not_on_the_hub_is_an_error(online, loader):
    with pytest.raises(FileNotFoundError, match=rf"no model {NAME}:.*HF_TOKEN") as refusal:
        loader(NAME)
    assert "\n" not in str(refusal.value)
    assert len(online.requests) == 1


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("name", ["", "outputs/run/best", "C:\\models\\best"])
def test_a_folder_that_is_not_there_is_an_error(name, loader):
    with pytest.raises(FileNotFoundError, match=r"There is no model .*: neither a folder"):
        loader(name)


def test_a_file_of_a_model_is_not_taken_for_a_name_on_the_hub(online, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "model.safetensors").touch()
    for load in (NestedNERPipeline, open_pipeline):
        with pytest.raises(FileNotFoundError, match=r"There is no model outputs/model.safetensors: neither a folder"):
            load("outputs/model.safetensors")
    assert online.requests == []


def test_cached_files_load_without_the_hub(online, encoder):
    tiny_model(encoder).config.push_to_hub("owner/name")
    assert TriaffineConfig.from_pretrained("owner/name")
    online.stop()
    assert TriaffineConfig.from_pretrained("owner/name").num_labels == 3


def test_a_missing_processor_is_looked_for_as_the_caller_asks(online, encoder, tmp_path):
    tiny_model(encoder).config.push_to_hub("owner/name")
    where = {"cache_dir": tmp_path, "local_files_only": True}
    TriaffineConfig.from_pretrained("owner/name", cache_dir=tmp_path)
    before = len(online.requests)
    with pytest.raises(FileNotFoundError, match="owner/name has no processor_config"):
        TriaffineProcessor.from_pretrained("owner/name", **where)
    assert len(online.requests) == before


def test_a_pipeline_takes_the_processor_of_the_models_revision(online, encoder, tmp_path):
    folder = tmp_path / "model"
    tiny_model(encoder).save_pretrained(folder)
    processor = tiny_processor(encoder, max_sentence_words=50)
    api = HfApi()
    api.create_repo("owner/name")
    commits = []
    for processor.max_sentence_words in (50, 60):
        processor.save_pretrained(folder)
        commits.append(api.upload_folder(repo_id="owner/name", folder_path=folder).oid)
    for revision, words in zip(commits, (50, 60), strict=True):
        model = TriaffineForNestedNER.from_pretrained("owner/name", revision=revision)
        assert NestedNERPipeline(model, device="cpu").processor.max_sentence_words == words
