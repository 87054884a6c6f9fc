"""Models that are not on this machine."""

import pytest

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
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


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("name", [NAME, "outputs/run/best"])
def test_a_name_that_is_nowhere_is_an_error(online, name, loader):
    with pytest.raises(OSError, match=name):
        loader(name)


def test_a_file_of_a_model_is_not_taken_for_a_name_on_the_hub(online, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "model.safetensors").touch()
    with pytest.raises(OSError, match=r"outputs/model\.safetensors"):
        NestedNERPipeline("outputs/model.safetensors")
    assert online.requests == []


def test_a_missing_processor_is_looked_for_as_the_caller_asks(online, encoder, tmp_path):
    tiny_model(encoder).config.push_to_hub("owner/name")
    where = {"cache_dir": tmp_path, "local_files_only": True}
    TriaffineConfig.from_pretrained("owner/name", cache_dir=tmp_path)
    before = len(online.requests)
    with pytest.raises(FileNotFoundError, match="owner/name has no processor_config"):
        TriaffineProcessor.from_pretrained("owner/name", **where)
    assert len(online.requests) == before


def test_a_pipeline_takes_the_processor_of_the_models_revision(online, encoder):
    model, processor, commits = tiny_model(encoder), tiny_processor(encoder), []
    for processor.max_sentence_words in (50, 60):
        commits.append(model.push_to_hub("owner/name", processor=processor).oid)
    for revision, words in zip(commits, (50, 60), strict=True):
        model = TriaffineForNestedNER.from_pretrained("owner/name", revision=revision)
        assert NestedNERPipeline(model, device="cpu").processor.max_sentence_words == words
