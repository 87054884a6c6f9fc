"""Publishing with the Hub's real client: what is uploaded, what stays at home, and what strangers make of it."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard, constants, snapshot_download
from transformers import TrainingArguments

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.evaluation.calibration import Calibration
from modeling_triaffine.model.handler import EndpointHandler
from modeling_triaffine.model.repository_triaffine import AUTO_MAP, CUSTOM_PIPELINES, REMOTE_CODE_FILES
from modeling_triaffine.publishing import RunSummary, publish_folder, upload
from modeling_triaffine.publishing.model_card import TAGS, card_of_folder, save_calibration
from modeling_triaffine.publishing.upload import saved_before
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.cards import make_evaluation
from tests.helpers.micro_training import micro_records, micro_trainer, task_arguments, trainer_like, write_task
from tests.helpers.portable import near
from tests.helpers.stranger import TEXT, ask_a_stranger, expected_answer
from tests.helpers.tiny import save_tiny_model, tiny_model, tiny_processor

pytest_plugins = ("tests.helpers.hub_server",)
NAME = "owner/name"
# Files of the training, of trackers and of the user, in alphabetical order.
LEFT_BEHIND = ["checkpoint-3", "log_history.json", "logo.png", "model.onnx", "patients", "training_args.bin"]
CALIBRATION = Calibration("validation", 6, 1.5, errors=(0.1, 0.0))
MODEL_FILES = {"config.json", "model.safetensors", "processor_config.json", "tokenizer.json", "tokenizer_config.json"}
MODEL_FILES |= {"vocabularies.json", "README.md", "run_summary.json"}
CODE_FILES = {*REMOTE_CODE_FILES, "handler.py", "requirements.txt"}
OF_A_FRESH_MODEL = (MODEL_FILES | CODE_FILES) - {"vocabularies.json", "run_summary.json"}


@pytest.fixture
def checkpoint(encoder, tmp_path) -> Path:
    """A model as a training leaves it."""
    folder = save_tiny_model(tmp_path / "checkpoint", encoder, ["chars"])
    RunSummary(dataset="micro", training_seconds=1.0, evaluation=make_evaluation("DNA")).save(folder)
    (folder / "README.md").write_text(card_of_folder(folder))
    for name in LEFT_BEHIND:
        (folder / name).mkdir() if name in ("checkpoint-3", "patients") else (folder / name).write_text("{}")
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"pickle")
    return folder


@pytest.fixture
def publish(checkpoint, command) -> Callable[..., str]:
    """Publishes a model, which must succeed; what was printed."""

    def run(*options: object, name: str = NAME, model: object = checkpoint) -> str:
        result = command("publish", "--model", model, "--repo-id", name, *options)
        assert result.code == 0, result.err
        return result.out

    return run


def train_on(checkpoint: Path) -> Path:
    """The checkpoint with other weights."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    with torch.no_grad():
        model.head.label_bias.add_(torch.tensor([0.4, -0.2, 0.1]))
    model.save_pretrained(checkpoint)
    return checkpoint


def files_of(hub: Any, name: str = NAME) -> dict[str, bytes]:
    """The files on the Hub, but for the one that every repository starts with."""
    _, files = hub.repositories[name].resolve("main")
    return {path: content for path, content in files.items() if path != ".gitattributes"}


def card_on(hub: Any, name: str = NAME) -> ModelCard:
    return ModelCard(files_of(hub, name)["README.md"].decode())


# ---- What a stranger sees


def test_published_models_load_where_only_transformers_is_installed(checkpoint, online, publish, tmp_path):
    """A second push updates, a pinned revision stays; endpoint; offline; what a stranger saves is whole."""
    publish()
    old = online.repositories[NAME].branches["main"]
    first = expected_answer(checkpoint)
    train_on(checkpoint)
    publish()
    second = expected_answer(checkpoint)
    assert first["scores"] != near(second["scores"])

    requests: list[dict[str, Any]] = [
        {"inputs": TEXT, "parameters": {"threshold": 0.2}},
        {"inputs": [TEXT, ""], "parameters": {"threshold": 0.2, "overlap": "all"}},
    ]
    again, of_folder = tmp_path / "again", tmp_path / "of_folder"
    answers = ask_a_stranger(
        tmp_path,
        ("load", {"name": str(checkpoint), "save_to": str(of_folder), "by_all_names": True}),
        ("load", {"name": NAME, "save_to": str(again)}),
        ("load", {"name": NAME, "revision": old}),
        ("load", {"name": str(again)}),
        ("serve", {"name": NAME, "requests": requests}),
        ("make_of_objects", {"name": NAME}),
        ("go_offline", {}),
        ("load", {"name": NAME}),
        environment=online.environment(),
    )
    served = [second["found"], [second["found"], []]]
    assert answers == near([second, second, first, second, served, [second["found"]] * 3, None, second])

    saved, saved_again = (
        {path.name: path.read_bytes() for path in folder.iterdir() if path.name in MODEL_FILES | CODE_FILES}
        for folder in (checkpoint, of_folder)
    )
    for contents in (saved, saved_again):
        config = json.loads(contents.pop("config.json"))
        assert (config["auto_map"], config["custom_pipelines"]) == (AUTO_MAP, CUSTOM_PIPELINES)
    not_of_a_model = {"README.md", "run_summary.json", "handler.py"}
    assert saved_again == {name: content for name, content in saved.items() if name not in not_of_a_model}
    assert all(str(tmp_path) not in path.read_text() for path in of_folder.glob("*.json"))


def test_the_code_that_was_read_is_the_code_that_runs(online, publish, tmp_path):
    """A pinned model saves its own code, and its pipeline is that of the commit that it was loaded from."""
    publish()
    pinned = online.repositories[NAME].branches["main"]
    online.api.upload_file(path_or_fileobj=b"of main", path_in_repo="pipeline_triaffine.py", repo_id=NAME)
    places = {"revision": pinned, "cache_dir": str(tmp_path / "cache"), "save_to": str(tmp_path / "saved")}
    questions = ("save_alone", {"name": NAME, **places}), ("make_of_objects", {"name": NAME, "code_revision": pinned})
    _, found = ask_a_stranger(tmp_path, *questions, environment=online.environment())
    published = online.repositories[NAME].commits[pinned]
    for name in CODE_FILES - {"handler.py"}:
        assert (tmp_path / "saved" / name).read_bytes() == published[name]
    assert found[0]


def test_all_ways_write_the_same_repository(checkpoint, online, publish, tmp_path):
    """The command, its dry run, the model and the trainer; each privately, in one commit."""
    save_calibration(checkpoint, CALIBRATION)
    printed = publish()
    assert f"Left out: {', '.join(LEFT_BEHIND)}." in printed
    assert "Published privately: " in printed
    published = files_of(online)
    assert set(published) == MODEL_FILES | CODE_FILES
    assert "## Calibration" in card_on(online).text

    publish("--output", tmp_path / "dry")
    assert {path.name: path.read_bytes() for path in (tmp_path / "dry").iterdir()} == published
    assert expected_answer(tmp_path / "dry") == near(expected_answer(checkpoint))

    TriaffineForNestedNER.from_pretrained(checkpoint).push_to_hub("name", commit_message="From memory")
    publish(model=NAME, name="owner/copy")
    for name, is_scored in (("tester/name", False), ("owner/copy", True)):
        files = files_of(online, name)
        assert name in files.pop("README.md").decode()
        of_run = {"README.md"} if is_scored else {"README.md", "run_summary.json"}
        assert files == {name: content for name, content in published.items() if name not in of_run}

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train.log").write_text("of a shell")
    training = {"num_train_epochs": 1, "use_cpu": True}
    corpus = write_task(tmp_path, training, micro_records(12, 0), micro_records(12, 1))
    options = ("--push_to_hub", "--hub_model_id", "owner/trained")
    run = prepare_run(task_arguments(corpus, tmp_path / "out", *options))
    train_and_save(run)
    of_run = files_of(online, "owner/trained")
    assert set(of_run) == set(published) - {"vocabularies.json"}  # its model reads no characters
    assert of_run["model.safetensors"] == (tmp_path / "out" / "model.safetensors").read_bytes()
    card = card_on(online, "owner/trained")
    assert card.data.model_name == "owner/trained"
    assert {result.metric_type for result in card.data.eval_results} == {"precision", "recall", "f1"}
    assert run.trainer.push_to_hub().oid == online.repositories["owner/trained"].branches["main"]  # nothing changed

    for repository in online.repositories.values():
        assert repository.private
        assert len(repository.commits) == 2  # the empty one, and that of the files

    run.trainer.push_to_hub(license="mit", tasks="token-classification", dataset_args="test")  # as its scripts do
    licensed = card_on(online, "owner/trained")
    assert (licensed.data.license, licensed.data.model_name) == ("mit", "owner/trained")


def test_trainer_creates_a_public_repository_on_request_alone(online, tmp_path):
    """Also with the arguments of transformers, which leave it to the Hub."""
    trainer = micro_trainer(tmp_path, micro_records(4), push_to_hub=True, hub_model_id=NAME, hub_private_repo=False)
    trainer_like(trainer, TrainingArguments(str(tmp_path), push_to_hub=True, hub_model_id="owner/plain", use_cpu=True))
    assert [online.repositories[name].private for name in (NAME, "owner/plain")] == [False, True]
    with pytest.raises(ValueError, match="leave out hub_strategy"):
        micro_trainer(tmp_path, micro_records(4), push_to_hub=True, hub_strategy="checkpoint")


# ---- Updates


def test_an_update_removes_weights_and_code_of_earlier_versions_and_nothing_else(online, publish):
    publish("--public")
    assert not online.repositories[NAME].private
    unknown = {"notes.txt": b"by somebody", "images/a.png": b"png", "LICENSE": b"Chosen there."}
    outdated = {"model-00001-of-00002.safetensors": b"x", "modeling_triaffine.py": b"x"}
    for name, content in {**unknown, **outdated}.items():
        online.api.upload_file(path_or_fileobj=content, path_in_repo=name, repo_id=NAME)
    before = len(online.repositories[NAME].commits)
    assert "Published for everybody: " in publish()  # as it was: nobody asked to close it
    files = files_of(online)
    assert set(files) == MODEL_FILES | CODE_FILES | set(unknown)
    assert len(online.repositories[NAME].commits) == before + 1


def test_what_people_wrote_is_published_with_the_model(checkpoint, online, publish):
    """Licenses, and one's own handler and requirements: from a folder or the Hub, with any weights."""
    written = {"LICENSE.txt": b"For all.", "NOTICE": b"By us.", "CITATION.cff": b"title: Ours\n", "COPYING": b"Copy."}
    written |= {"handler.py": b"class EndpointHandler: ...\n", "requirements.txt": b"torch\nmyclient\n"}
    for name, content in {**written, "notes.txt": b"Mine.", "optimizer.safetensors": b"x"}.items():
        (checkpoint / name).write_bytes(content)
    publish()
    model = TriaffineForNestedNER.from_pretrained(NAME)
    with torch.no_grad():
        model.head.label_bias.zero_()
    model.push_to_hub("owner/tuned")
    for name in (NAME, "owner/tuned"):
        assert written.items() <= files_of(online, name).items()
        assert files_of(online, name).keys().isdisjoint({"notes.txt", "optimizer.safetensors"})


def test_a_calibration_that_was_undone_is_not_in_the_card(checkpoint, online, publish):
    save_calibration(checkpoint, CALIBRATION)
    config = TriaffineConfig.from_pretrained(checkpoint)
    config.temperature = 1.0
    config.save_pretrained(checkpoint)
    publish("--new-card")
    assert "## Calibration" not in card_on(online).text


def test_a_folder_that_is_gone_is_not_looked_up_on_the_hub(checkpoint, online, publish, monkeypatch):
    """By its relative name, a stranger's repository would give a handler that endpoints run."""
    (checkpoint / "handler.py").write_bytes(b"class EndpointHandler: ...  # a stranger's\n")
    publish(name="outputs/mine")
    own = checkpoint.parent / "outputs" / "mine"
    own.parent.mkdir()
    checkpoint.rename(own)
    monkeypatch.chdir(own.parents[1])
    model = TriaffineForNestedNER.from_pretrained("outputs/mine")
    monkeypatch.chdir("/")
    shutil.rmtree(own)
    model.push_to_hub("owner/second")
    assert b"stranger" not in files_of(online, "owner/second").get("handler.py", b"")


def test_branch_is_made_and_a_private_repository_stays_so(checkpoint, online, publish):
    publish_folder(checkpoint, NAME, revision="trial")
    assert files_of(online) == {}
    _, files = online.repositories[NAME].resolve("trial")
    assert set(files) > MODEL_FILES
    assert f"{NAME} exists and stays private" in publish("--public")
    assert online.repositories[NAME].private


def test_a_card_is_written_once_or_if_it_is_asked_for(checkpoint, online, publish, caplog):
    publish()
    written = files_of(online)["README.md"]
    publish(model=shutil.copytree(checkpoint, checkpoint.with_name("moved")))
    assert files_of(online)["README.md"] == written
    online.api.upload_file(path_or_fileobj=b"# Theirs", path_in_repo="README.md", repo_id=NAME)
    publish()
    assert files_of(online)["README.md"] == b"# Theirs"
    assert f"{NAME} keeps its card" in caplog.text
    (checkpoint / "README.md").write_text("# Mine")
    publish()
    assert files_of(online)["README.md"] == b"# Mine"
    publish("--new-card")
    assert files_of(online)["README.md"] == written


# ---- Refusals


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda checkpoint: (checkpoint / "model.safetensors").unlink(), "no file named model.safetensors"),
        (lambda checkpoint: os.truncate(checkpoint / "model.safetensors", 1000), "are damaged or cut off"),
        (lambda checkpoint: (checkpoint / "vocabularies.json").unlink(), "has no vocabularies.json"),
        (lambda checkpoint: (checkpoint / "NOTICE").symlink_to("/"), "NOTICE is a folder, or a link out"),
        (lambda checkpoint: ["--output", checkpoint], "exists already. Give the name of a new folder"),
        (lambda checkpoint: ["--repo-id", "a//b"], "'a//b'"),
        (lambda checkpoint: ["--model", "owner/nothing"], "owner/nothing: 404 Client Error"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_published(checkpoint, online, command, mistake, message):
    more = mistake(checkpoint) or []
    result = command("publish", "--model", checkpoint, "--repo-id", NAME, *more)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert online.repositories == {}


def test_a_link_is_followed_in_the_folder_and_in_the_hubs_cache_only(checkpoint, online, publish, tmp_path):
    publish()
    publish(model=snapshot_download(NAME), name="owner/copy")
    assert files_of(online, "owner/copy")["model.safetensors"] == (checkpoint / "model.safetensors").read_bytes()
    (checkpoint / "LICENSE").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="LICENSE is a folder, or a link out of the model's folder"):
        TriaffineForNestedNER.from_pretrained(checkpoint).push_to_hub("owner/other")


def test_errors_of_the_hub_say_how_to_publish_later(checkpoint, online, monkeypatch, tmp_path):
    folder = checkpoint.rename(tmp_path / "my run")
    later = f"The model is saved in {folder}; publish it with: "
    later += f"triaffine-ner publish --model '{folder}' --repo-id {NAME}"

    def publish() -> str:
        with pytest.raises(OSError, match=f"{re.escape(later)}$") as refused, saved_before(folder, NAME):
            publish_folder(folder, NAME)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    for token, message in {online.reading_token: "Forbidden", "hf_unknown": "Invalid username or password"}.items():
        monkeypatch.setenv("HF_TOKEN", token)
        assert message in publish()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert f"The Hub ({online.endpoint}) does not answer" in publish()
    assert online.repositories == {}


def test_a_busy_hub_is_asked_again_and_a_lost_answer_is_no_refusal(checkpoint, online, caplog, monkeypatch):
    online.faults += [("/api/repos/create", 429), ("/commit/", 429)]
    publish_folder(checkpoint, NAME)
    assert len(online.repositories[NAME].commits) == 2
    assert caplog.text.count("too many requests to the Hub; it asks to wait for 0 seconds") == 2
    for fate in (504, 0):
        online.faults += [("/commit/", fate)]
        with pytest.raises(ConnectionError, match=f"may be published all the same: look at .*/{NAME} first"):
            publish_folder(train_on(checkpoint), NAME, new_card=True)
    assert len(online.repositories[NAME].commits) == 3
    monkeypatch.setattr(upload, "LONGEST_WAIT", -1)  # the Hub may ask to wait for hours
    online.faults += [("/api/repos/create", 429)]
    with pytest.raises(OSError, match="429"):
        publish_folder(checkpoint, NAME)


# ---- Models and processors on their own


@pytest.mark.parametrize("first", ["model", "processor"])
def test_model_and_processor_are_pushed_one_by_one_in_either_order(encoder, online, first):
    """As with any model of transformers; what comes second leaves what is there, the card included."""
    parts = {"model": tiny_model(encoder), "processor": tiny_processor(encoder)}
    parts[first].push_to_hub(NAME)
    parts["processor" if first == "model" else "model"].push_to_hub(NAME)
    assert set(files_of(online)) == OF_A_FRESH_MODEL
    assert online.repositories[NAME].private
    assert NestedNERPipeline(model=NAME)(TEXT) is not None


def test_model_with_its_processor_is_one_commit(encoder, online, caplog, tmp_path):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    model.push_to_hub(NAME, processor=processor, tags=["chemistry", "triaffine"])
    assert card_on(online).data.tags == [*TAGS, "chemistry"]
    model.save_pretrained(tmp_path / "saved", push_to_hub=True, repo_id="owner/saved", processor=processor)
    pipeline = NestedNERPipeline(model=model, processor=processor)
    pipeline.save_pretrained(tmp_path / "pipeline", push_to_hub=True, repo_id="owner/pipeline")
    for name in (NAME, "owner/saved", "owner/pipeline"):
        assert set(files_of(online, name)) == OF_A_FRESH_MODEL
        assert len(online.repositories[name].commits) == 2  # the empty one, and that of the files
    assert "processor" not in caplog.text


def test_saving_takes_the_positional_arguments_of_transformers(checkpoint, online, tmp_path):
    """The second one says whether this is the main process; for configuration and processor, whether to push."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    model.save_pretrained(tmp_path / "main", True)
    model.save_pretrained(tmp_path / "other", False, push_to_hub=True)
    assert (tmp_path / "main" / "model.safetensors").exists()
    assert not (tmp_path / "other" / "model.safetensors").exists()
    assert online.repositories == {}
    model.save_pretrained(tmp_path / "model", True, None, True)
    model.config.save_pretrained(tmp_path / "configuration", True)
    TriaffineProcessor.from_pretrained(checkpoint).save_pretrained(tmp_path / "processor", True)
    of_processor = {"vocabularies.json", "processor_config.json", "tokenizer.json"}
    assert CODE_FILES | {"config.json", "model.safetensors"} <= set(files_of(online, "tester/model"))
    assert CODE_FILES | {"config.json"} <= set(files_of(online, "tester/configuration"))
    assert CODE_FILES | of_processor <= set(files_of(online, "tester/processor"))
    assert all(repository.private for repository in online.repositories.values())


def test_a_push_while_saving_is_of_the_weights_that_are_saved(checkpoint, online, tmp_path):
    """Those of a model in several processes, or averaged ones, are given beside it."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    others = {name: weights + 1 for name, weights in model.state_dict().items()}
    model.save_pretrained(tmp_path, state_dict=others, max_shard_size="20KB", push_to_hub=True, repo_id=NAME)
    shards = {path.name: path.read_bytes() for path in tmp_path.glob("model-*.safetensors")}
    assert len(shards) > 2
    assert shards.items() <= files_of(online).items()


def test_model_of_remote_code_pushes_what_it_saves(encoder, online, monkeypatch):
    """Without the package there is no card; the rest is whole, and as private."""
    monkeypatch.setattr(TriaffineForNestedNER, "push_repository", None)
    model = tiny_model(encoder)
    model.push_to_hub(NAME)
    assert set(files_of(online)) == {"config.json", "model.safetensors", "README.md", *CODE_FILES}
    assert online.repositories[NAME].private


def test_handler_explains_what_is_wrong_with_a_request(saved_model):
    handler = EndpointHandler(path=str(saved_model))
    assert handler({"inputs": []}) == []
    assert handler({"inputs": TEXT, "parameters": None}) == handler({"inputs": [TEXT], "options": {}})[0]
    of_client = {"ignore_labels": ["protein"], "stride": 3, "aggregation_strategy": "simple"}
    assert {entity["entity_group"] for entity in handler({"inputs": TEXT, "parameters": of_client})} <= {"DNA"}
    for request, message in (
        ({"text": TEXT}, "object with `inputs`"),
        ({"inputs": [TEXT, None]}, "text 1 .* is of type NoneType"),
        ({"inputs": TEXT, "parameters": {"batch_size": 5}}, "`parameters`: threshold, overlap, labels, ignore_"),
        ({"inputs": TEXT, "parameters": ["threshold"]}, "must be an object"),
        ({"inputs": TEXT, "parameters": {"threshold": 2}}, "`threshold` is 2"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            handler(request)
