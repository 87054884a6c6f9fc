"""Publishing with the Hub's real client: what is uploaded, what stays at home, and what strangers make of it."""

import configparser
import dataclasses
import json
import shutil
from typing import Any

import pytest
import torch
import yaml
from huggingface_hub import HfApi, ModelCard
from transformers.utils.hub import create_and_tag_model_card

from modeling_triaffine import (
    NestedNERPipeline,
    TriaffineConfig,
    TriaffineForNestedNER,
    TriaffineProcessor,
)
from modeling_triaffine.evaluation.reliability import Bin, Calibration
from modeling_triaffine.model.handler import EndpointHandler
from modeling_triaffine.model.repository_triaffine import (
    AUTO_MAP,
    CUSTOM_PIPELINES,
    REQUIREMENTS,
)
from modeling_triaffine.publishing import push_model
from modeling_triaffine.publishing.calibration import save_calibration
from modeling_triaffine.publishing.model_card import TAGS, is_edited, mark_card, merge_cards
from modeling_triaffine.publishing.run_summary import Label
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.checkpoint_to_publish import (
    CODE_FILES,
    LEFT_BEHIND,
    MODEL_FILES,
    NAME,
    SUMMARY,
    api_of,
    files_of,
    train_on,
)
from tests.helpers.micro_training import (
    REPOSITORY,
    micro_records,
    micro_trainer,
    run_arguments,
    write_corpus,
    write_recipe,
)
from tests.helpers.portable import near
from tests.helpers.stranger import TEXT, ask_a_stranger, expected_answer
from tests.helpers.tiny import tiny_model, tiny_processor

pytest_plugins = ("tests.helpers.hub_server",)
CALIBRATION = Calibration(
    "validation", 6, "best F1", 1.5, bins_before=[Bin(5, 0.9, 0.8)], bins_after=[Bin(5, 0.8, 0.8)]
)


# ---- What a stranger sees


def test_published_models_load_where_only_transformers_is_installed(checkpoint, online, publish, tmp_path):
    """A second push updates, a pinned revision stays; endpoint; offline.

    What a stranger saves is code of its own, and whole.
    """
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
        ("go_offline", {}),
        ("load", {"name": NAME}),
        environment=online.environment(),
    )
    served = [second["found"], [second["found"], []]]
    assert answers == near([second, second, first, second, served, None, second])

    saved, saved_again = (
        {path.name: path.read_bytes() for path in folder.iterdir() if path.name in MODEL_FILES | CODE_FILES}
        for folder in (checkpoint, of_folder)
    )
    for contents in (saved, saved_again):
        config = json.loads(contents.pop("config.json"))
        assert (config["auto_map"], config["custom_pipelines"]) == (AUTO_MAP, CUSTOM_PIPELINES)
    of_training = {"README.md", "run_summary.json"}
    assert saved_again == {name: content for name, content in saved.items() if name not in of_training}
    assert all(str(tmp_path) not in path.read_text() for path in of_folder.glob("*.json"))


def test_a_pinned_revision_is_saved_with_its_own_code(online, publish, tmp_path):
    publish()
    pinned = online.repositories[NAME].branches["main"]
    api_of(online).upload_file(path_or_fileobj=b"of main", path_in_repo="pipeline_triaffine.py", repo_id=NAME)
    places = {"revision": pinned, "cache_dir": str(tmp_path / "cache"), "save_to": str(tmp_path / "saved")}
    ask_a_stranger(tmp_path, ("save_alone", {"name": NAME, **places}), environment=online.environment())
    published = online.repositories[NAME].commits[pinned]
    for name in CODE_FILES:
        assert (tmp_path / "saved" / name).read_bytes() == published[name]


def test_all_ways_write_the_same_repository(checkpoint, online, publish, encoder, tmp_path):
    """The command, its dry run, the model and the trainer; each privately, in one commit."""
    save_calibration(checkpoint, CALIBRATION)
    printed = publish()
    assert f"Left out: {', '.join(LEFT_BEHIND)}." in printed
    assert "Published privately: " in printed
    published = files_of(online)
    assert set(published) == MODEL_FILES | CODE_FILES

    publish("--dry-run", "--output", tmp_path / "dry")
    assert {path.name: path.read_bytes() for path in (tmp_path / "dry").iterdir()} == published

    TriaffineForNestedNER.from_pretrained(checkpoint).push_to_hub("name", commit_message="From memory")
    of_model = files_of(online, "tester/name")
    assert of_model.pop("README.md").decode().count("tester/name") > 2
    assert of_model == {name: content for name, content in published.items() if name != "README.md"}

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train.log").write_text("of a shell")
    corpus = write_corpus(tmp_path / "corpus", train=micro_records(12, 0), dev=micro_records(12, 1))
    recipe = write_recipe(tmp_path / "recipe", training={"num_train_epochs": 1, "use_cpu": True})
    options = ("--push_to_hub", "--hub_model_id", "owner/trained")
    run = prepare_run(run_arguments(recipe, corpus, tmp_path / "out", *options))
    train_and_save(run)
    of_run = files_of(online, "owner/trained")
    # Its model reads no characters.
    assert set(of_run) == set(published) - {"vocabularies.json"}
    assert of_run["model.safetensors"] == (tmp_path / "out" / "model.safetensors").read_bytes()
    card = ModelCard(of_run["README.md"].decode())
    assert card.data.model_name == "owner/trained"
    assert {result.metric_type for result in card.data.eval_results} == {"precision", "recall", "f1"}
    # What did not change is not committed again.
    assert run.trainer.push_to_hub(blocking=False).result().oid == online.repositories["owner/trained"].branches["main"]

    for repository in online.repositories.values():
        assert repository.private
        assert len(repository.commits) == 2  # the empty one, and that of the files

    # As the scripts of transformers do.
    run.trainer.push_to_hub(license="mit", tasks="token-classification", dataset_args="test")
    licensed = ModelCard(files_of(online, "owner/trained")["README.md"].decode())
    assert (licensed.data.license, licensed.data.model_name) == ("mit", "owner/trained")


def test_other_files_of_a_checkpoint_on_the_hub_stay_behind(online, publish, caplog):
    publish()
    api_of(online).upload_file(path_or_fileobj=b"x", path_in_repo="data/patients.csv", repo_id=NAME)
    publish(model=NAME, name="owner/copy")
    assert set(files_of(online, "owner/copy")) == MODEL_FILES | CODE_FILES
    assert "data/patients.csv" in caplog.text
    assert ".gitattributes" not in caplog.text


def test_trainer_creates_a_public_repository_on_request(online, tmp_path):
    micro_trainer(tmp_path, micro_records(4), push_to_hub=True, hub_model_id=NAME, hub_private_repo=False)
    assert not online.repositories[NAME].private


# ---- Updates


def test_update_removes_what_is_no_part_any_more_and_nothing_else(online, publish):
    publish("--public", "--message", "First")
    assert not online.repositories[NAME].private
    unknown = {"notes.txt": b"by somebody", "images/a.png": b"png", "all_results.json": b"{}"}
    outdated = {"model-00001-of-00002.safetensors": b"x", "vocab.txt": b"x"}
    for name, content in {**unknown, **outdated}.items():
        api_of(online).upload_file(path_or_fileobj=content, path_in_repo=name, repo_id=NAME)
    before = len(online.repositories[NAME].commits)

    printed = publish()
    assert f"Removed files of older versions: {', '.join(sorted(outdated))}." in printed
    assert "Published for everybody: " in printed  # as it was: nobody asked to close it
    files = files_of(online)
    assert set(files) == MODEL_FILES | CODE_FILES | set(unknown)
    assert len(online.repositories[NAME].commits) == before + 1


def test_licences_are_uploaded_and_not_removed(checkpoint, online, publish, tmp_path):
    notices = {"LICENSE.txt": b"For all.", "NOTICE": b"By us.", "CITATION.cff": b"title: Ours\n", "COPYING": b"Copy."}
    for name, content in notices.items():
        (checkpoint / name).write_bytes(content)
    publish()
    assert notices.items() <= files_of(online).items()
    (checkpoint / "NOTICE").unlink()
    api_of(online).upload_file(path_or_fileobj=b"Chosen there.", path_in_repo="LICENSE", repo_id=NAME)
    (checkpoint / "LICENSE.txt").write_bytes(b"For some.")
    assert "Removed" not in publish()
    notices |= {"LICENSE.txt": b"For some.", "LICENSE": b"Chosen there."}
    assert notices.items() <= files_of(online).items()
    publish("--dry-run", "--output", tmp_path / "dry", model=NAME)
    assert {name: (tmp_path / "dry" / name).read_bytes() for name in notices} == notices


def test_what_an_endpoint_reads_is_kept_if_it_is_not_ours(checkpoint, online, publish):
    """A handler with one line changed is the owner's, and so are requirements with a client of theirs."""
    handler, requirements = checkpoint / "handler.py", checkpoint / "requirements.txt"
    written = {path.name: path.read_bytes() for path in (handler, requirements)}
    own = written["handler.py"].replace(b'("threshold", "overlap", ', b'("threshold", ')
    assert own != written["handler.py"]
    handler.write_bytes(own)
    printed = publish()
    assert "handler.py was edited and is kept" in printed
    assert "requirements.txt was" not in printed
    assert files_of(online)["handler.py"] == own
    assert files_of(online)["requirements.txt"] == written["requirements.txt"]

    requirements.write_text(f"{REQUIREMENTS}myclient\n")
    assert "requirements.txt was edited" in publish()
    assert b"myclient" in files_of(online)["requirements.txt"]

    handler.unlink()  # what the owner changed on the Hub stays, too
    publish()
    assert files_of(online)["handler.py"] == own
    api_of(online).delete_file("handler.py", NAME)

    requirements.unlink()
    api_of(online).delete_file("requirements.txt", NAME)
    handler.write_bytes(written["handler.py"].replace(b"\n", b"\r\n"))
    assert "was edited" not in publish()
    assert written.items() <= files_of(online).items()


def test_a_model_pushed_from_python_takes_along_what_people_wrote(checkpoint, online, caplog):
    """A license, and one's own handler and requirements: from a folder or the Hub, with any weights."""
    written = {"LICENSE": b"For all.", "CITATION.cff": b"title: Ours\n", "handler.py": b"class EndpointHandler: ...\n"}
    written["requirements.txt"] = f"{REQUIREMENTS}myclient\n".encode()
    for name, content in {**written, "notes.txt": b"Mine.", "optimizer.safetensors": b"x"}.items():
        (checkpoint / name).write_bytes(content)
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    model.push_to_hub(NAME)
    assert written.items() <= files_of(online).items()
    assert files_of(online).keys().isdisjoint({"notes.txt", "optimizer.safetensors"})
    assert "60.00" in files_of(online)["README.md"].decode()

    model = TriaffineForNestedNER.from_pretrained(NAME)
    with torch.no_grad():
        model.head.label_bias.zero_()
    model.push_to_hub("owner/tuned")
    assert written.items() <= files_of(online, "owner/tuned").items()
    assert f"Weights or labels differ from those in {NAME}" in caplog.text


def test_the_scores_of_labels_do_not_go_with_other_names(checkpoint, online, caplog):
    model = TriaffineForNestedNER.from_pretrained(checkpoint, id2label={0: "GENE", 1: "PROTEIN", 2: "None"})
    model.push_to_hub(NAME)
    assert f"Weights or labels differ from those in {checkpoint}" in caplog.text
    card = files_of(online)["README.md"].decode()
    assert "`GENE`" in card
    assert "DNA" not in card


def test_labels_renamed_in_a_folder_do_not_get_the_scores_of_the_old_ones(checkpoint, online, publish, caplog):
    labels = {label: Label(3) for label in TriaffineConfig.from_pretrained(checkpoint).entity_labels}
    dataclasses.replace(SUMMARY, labels=labels, license="mit").save(checkpoint)
    publish()
    assert "60.00" in files_of(online)["README.md"].decode()
    config = TriaffineConfig.from_pretrained(checkpoint)
    config.id2label = {0: "GENE", 1: "PROTEIN", 2: "None"}
    config.save_pretrained(checkpoint)
    publish()
    card = files_of(online)["README.md"].decode()
    assert "`GENE`" in card
    assert "DNA" not in card
    assert ModelCard(card).data.license == "mit"
    assert "no record of how this model was trained" not in card
    assert caplog.text.count(f"of the labels {', '.join(labels)}, not of the model's GENE, PROTEIN,") == 1


def test_a_calibration_that_was_undone_is_not_published(checkpoint, online, publish):
    save_calibration(checkpoint, CALIBRATION)
    publish()
    assert "## Calibration" in files_of(online)["README.md"].decode()
    config = TriaffineConfig.from_pretrained(checkpoint)
    config.temperature = 1.0
    config.save_pretrained(checkpoint)
    publish()
    assert "## Calibration" not in files_of(online)["README.md"].decode()
    assert json.loads(files_of(online)["run_summary.json"])["calibration"] is None


def test_a_folder_that_is_gone_is_not_looked_up_on_the_hub(checkpoint, online, publish, monkeypatch, tmp_path):
    """By its relative name, a stranger's repository would give a handler that endpoints run."""
    (checkpoint / "handler.py").write_bytes(b"class EndpointHandler: ...  # a stranger's\n")
    publish(name="outputs/mine")
    (checkpoint / "handler.py").write_bytes(b"class EndpointHandler: ...  # ours\n")
    own = checkpoint.parent / "outputs" / "mine"
    own.parent.mkdir()
    checkpoint.rename(own)
    monkeypatch.chdir(own.parents[1])
    model = TriaffineForNestedNER.from_pretrained("outputs/mine")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    model.push_to_hub(NAME)
    assert files_of(online)["handler.py"].endswith(b"# ours\n")
    assert "processor_config.json" in files_of(online)
    shutil.rmtree(own)
    model.push_to_hub("owner/second")
    assert b"stranger" not in files_of(online, "owner/second").get("handler.py", b"")


def test_branch_is_made_and_a_private_repository_stays_so(online, publish):
    publish("--branch", "trial")
    assert files_of(online) == {}
    _, files = online.repositories[NAME].resolve("trial")
    assert set(files) > MODEL_FILES
    assert f"{NAME} exists and stays private" in publish("--public")
    assert online.repositories[NAME].private


# ---- The card


def test_card_is_written_from_the_summary_under_the_new_name(checkpoint, online):
    """Of a model that is still the one it was loaded as; another has no scores yet."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    commit = push_model(model, NAME).oid
    assert online.repositories[NAME].private
    card = ModelCard(files_of(online)["README.md"].decode())
    assert card.data.model_name == NAME
    assert {result.metric_value for result in card.data.eval_results} == {0.75, 0.5, 0.6}
    assert not is_edited(files_of(online)["README.md"].decode())

    with torch.no_grad():
        model.head.label_bias.zero_()
    push_model(model, NAME)
    assert "run_summary.json" not in files_of(online)
    card = ModelCard(files_of(online)["README.md"].decode())
    assert card.data.eval_results is None
    assert "60.00" not in card.text

    push_model(TriaffineForNestedNER.from_pretrained(NAME, revision=commit), "owner/before")
    assert "60.00" in files_of(online, "owner/before")["README.md"].decode()


def test_card_stays_with_weights_divided_into_other_files(checkpoint, online, caplog):
    """Equal tensors are the same model in one file or in several; another precision is another one."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    push_model(model, NAME, max_shard_size="20KB")
    assert "model.safetensors.index.json" in files_of(online)
    push_model(TriaffineForNestedNER.from_pretrained(NAME), "owner/single")
    assert "model.safetensors" in files_of(online, "owner/single")
    for name in (NAME, "owner/single"):
        assert "60.00" in files_of(online, name)["README.md"].decode()
    assert "Weights or labels differ" not in caplog.text

    push_model(model.to(torch.bfloat16), NAME)
    assert f"Weights or labels differ from those in {checkpoint}" in caplog.text
    assert "60.00" not in files_of(online)["README.md"].decode()


def test_edited_card_is_kept(checkpoint, online, publish, caplog):
    publish()
    written = files_of(online)["README.md"].decode()
    on_hub = written.replace("# name", "# Our name")
    api_of(online).upload_file(path_or_fileobj=on_hub.encode(), path_in_repo="README.md", repo_id=NAME)
    publish()
    assert files_of(online)["README.md"].decode() == on_hub
    assert f"The card in {NAME} was edited there and is kept" in caplog.text

    at_home = (checkpoint / "README.md").read_text().replace("# checkpoint", "# My name")
    (checkpoint / "README.md").write_text(at_home)
    assert "README.md was edited and is kept" in publish()
    assert files_of(online)["README.md"].decode() == at_home
    assert f"The card in {NAME} is replaced" in caplog.text

    publish("--new-card")
    assert files_of(online)["README.md"].decode() == written


@pytest.mark.parametrize("draft", ["---\nlicense: mit\ntags:\n- medicine\n---\n", "---\r\n---", "\n"])
def test_a_draft_of_a_card_is_replaced(checkpoint, online, publish, caplog, draft):
    """The Hub's website makes one of front matter where a licence is chosen for a new repository: that stays.

    The licence stays when the model is published again, there or, as it is on the Hub, elsewhere.
    """
    api_of(online).create_repo(NAME)
    api_of(online).upload_file(path_or_fileobj=draft.encode(), path_in_repo="README.md", repo_id=NAME)
    (checkpoint / "README.md").write_bytes(draft.encode())
    assert "was edited" not in publish()
    tags = ModelCard(files_of(online)["README.md"].decode()).data.tags
    assert tags == [*TAGS, *(["medicine"] if "mit" in draft else [])]
    (checkpoint / "README.md").unlink()
    publish("--new-card")
    publish(model=NAME, name="owner/other")
    other = ModelCard(files_of(online, "owner/other")["README.md"].decode())
    card = ModelCard(files_of(online)["README.md"].decode())
    assert (card.data.model_name, other.data.model_name) == (NAME, "owner/other")
    assert card.data.license == other.data.license == ("mit" if "mit" in draft else None)
    assert f"The draft of a card in {NAME} is replaced; its history keeps it." in caplog.text
    assert not is_edited(str(card))


def test_an_entry_of_a_draft_that_the_card_has_comes_once():
    merged = merge_cards(mark_card("---\ndatasets:\n- a\n- b\n---\n\n# Name\n"), "---\ndatasets:\n- b\n- c\n---\n")
    assert ModelCard(merged).data.datasets == ["a", "b", "c"]


def test_what_a_draft_chose_stays_in_the_next_card_of_the_model():
    """Its license with name and text, the terms of a gated model; a run's results are those of the next card."""
    chosen = {"license": "other", "license_name": "ours", "license_link": "LICENSE", "extra_gated_prompt": "Agree."}
    first = merge_cards(mark_card("---\nmetrics:\n- f1\n---\n\n# Name\n"), f"---\n{yaml.safe_dump(chosen)}---\n")
    second = merge_cards(mark_card("---\nlibrary_name: transformers\n---\n\n# Name\n"), first)
    assert ModelCard(second).data.to_dict() == {"library_name": "transformers", **chosen}
    licensed = merge_cards(mark_card("---\nlicense: mit\n---\n\n# Name\n"), first)
    assert ModelCard(licensed).data.to_dict() == {"license": "mit", "extra_gated_prompt": "Agree."}


def test_mark_of_a_card():
    card = mark_card("---\nlicense: mit\n---\n\n# Name\n")
    assert not is_edited(card)
    assert not is_edited(card.replace("\n", "\r\n"))
    assert not is_edited(str(ModelCard(card)))
    assert is_edited(card.replace("Name", "name"))
    assert is_edited(card + "More.\n")
    assert is_edited("# Name\n")
    assert is_edited("---\nlicense: mit\n---\n\nBy us.\n")
    assert is_edited("---\n\nBetween two rules.\n")


def test_the_template_of_transformers_is_a_draft_until_somebody_fills_it_in(online):
    HfApi().create_repo(NAME)
    card = str(create_and_tag_model_card(NAME, ["chemistry"]))
    assert not is_edited(card)
    assert is_edited(card.replace("**Developed by:** [More Information Needed]", "**Developed by:** Us"))


# ---- Models and processors on their own


OF_A_FRESH_MODEL = (MODEL_FILES | CODE_FILES) - {"vocabularies.json", "run_summary.json"}


@pytest.mark.parametrize("first", ["model", "processor"])
def test_model_and_processor_are_pushed_one_by_one_in_either_order(encoder, online, caplog, first):
    """As with any model of transformers; what comes second leaves what is there, the card included."""
    parts = {"model": tiny_model(encoder), "processor": tiny_processor(encoder)}
    second = "processor" if first == "model" else "model"
    parts[first].push_to_hub(NAME)
    assert ("has no processor yet" in caplog.text) == (first == "model")
    parts[second].push_to_hub(NAME)
    assert set(files_of(online)) == OF_A_FRESH_MODEL
    assert online.repositories[NAME].private
    assert not is_edited(files_of(online)["README.md"].decode())
    assert NestedNERPipeline(model=NAME)(TEXT) is not None


def test_model_with_its_processor_is_one_commit(encoder, online, caplog, tmp_path):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    model.push_to_hub(NAME, processor=processor)
    model.save_pretrained(tmp_path / "saved", push_to_hub=True, repo_id="owner/saved", processor=processor)
    pipeline = NestedNERPipeline(model=model, processor=processor)
    pipeline.save_pretrained(tmp_path / "pipeline", push_to_hub=True, repo_id="owner/pipeline")
    for name in (NAME, "owner/saved", "owner/pipeline"):
        assert set(files_of(online, name)) == OF_A_FRESH_MODEL
        assert len(online.repositories[name].commits) == 2  # the empty one, and that of the files
    assert "processor" not in caplog.text


def test_model_of_a_place_without_processor_is_published_alone(encoder, online, caplog, tmp_path):
    tiny_model(encoder).save_pretrained(tmp_path)
    TriaffineForNestedNER.from_pretrained(tmp_path).push_to_hub(NAME)
    assert "has no processor_config.json" in caplog.text
    assert "processor_config.json" not in files_of(online)


def test_tags_come_to_those_of_the_card(encoder, online, tmp_path):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    model.push_to_hub(NAME, processor=processor, tags=["chemistry", "triaffine"])
    tags = ModelCard(files_of(online)["README.md"].decode()).data.tags
    assert tags == [*TAGS, "chemistry"]
    model.save_pretrained(tmp_path, push_to_hub=True, repo_id=NAME, processor=processor, tags="law")
    assert ModelCard(files_of(online)["README.md"].decode()).data.tags == [*TAGS, "law"]


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
    # The card that transformers leaves for others to fill in gives way.
    push_model(model, "tester/processor")
    assert not is_edited(files_of(online, "tester/processor")["README.md"].decode())


def test_a_push_while_saving_is_of_the_weights_that_are_saved(checkpoint, online, tmp_path):
    """Those of a model in several processes, or averaged ones, are given beside it."""
    model = TriaffineForNestedNER.from_pretrained(checkpoint)
    others = {name: weights + 1 for name, weights in model.state_dict().items()}
    model.save_pretrained(tmp_path, state_dict=others, max_shard_size="20KB", push_to_hub=True, repo_id=NAME)
    shards = {path.name: path.read_bytes() for path in tmp_path.glob("model-*.safetensors")}
    assert len(shards) > 2
    assert shards.items() <= files_of(online).items()
    assert "60.00" not in files_of(online)["README.md"].decode()


def test_model_of_remote_code_pushes_what_it_saves(encoder, online, tmp_path, monkeypatch):
    """Without the package there is no card; the rest is whole, and as private."""
    monkeypatch.setattr(TriaffineForNestedNER, "push_repository", None)
    model = tiny_model(encoder)
    with pytest.raises(ValueError, match="nothing was saved"):
        model.save_pretrained(tmp_path / "saved", state_dict=model.state_dict(), push_to_hub=True)
    assert not (tmp_path / "saved").exists()
    model.push_to_hub(NAME)
    assert set(files_of(online)) == {"config.json", "model.safetensors", "README.md", *CODE_FILES}
    assert online.repositories[NAME].private


# ---- The endpoint


def test_handler_explains_what_is_wrong_with_a_request(saved_model):
    handler = EndpointHandler(path=str(saved_model))
    assert handler({"inputs": []}) == []
    assert handler({"inputs": TEXT, "parameters": None}) == handler({"inputs": [TEXT], "options": {}})[0]
    assert handler({"inputs": TEXT, "parameters": {"aggregation_strategy": "simple"}}) == handler({"inputs": TEXT})
    of_client = {"ignore_labels": ["protein"], "stride": 3}
    assert {one["entity_group"] for one in handler({"inputs": TEXT, "parameters": of_client})} <= {"DNA"}
    for request, message in (
        ({"text": TEXT}, "object with `inputs`"),
        ({"inputs": 3}, "text 0 .* is of type int"),
        ({"inputs": [TEXT, None]}, "text 1 .* is of type NoneType"),
        ({"inputs": TEXT, "parameters": {"batch_size": 5}}, "`parameters`: threshold, overlap, ignore_labels"),
        ({"inputs": TEXT, "parameters": ["threshold"]}, "must be an object"),
        ({"inputs": TEXT, "parameters": 5}, "must be an object"),
        ({"inputs": TEXT, "parameters": {"threshold": "0.5"}}, "`threshold` is '0.5'"),
        ({"inputs": TEXT, "parameters": {"threshold": 2}}, "`threshold` is 2"),
        ({"inputs": TEXT, "parameters": {"overlap": "nonesuch"}}, "`overlap` is 'nonesuch'"),
        ({"inputs": TEXT, "parameters": {"aggregation_strategy": "none"}}, "`aggregation_strategy` is 'none'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            handler(request)


def test_requirements_of_an_endpoint_are_those_of_the_package():
    package = configparser.ConfigParser()
    package.read(REPOSITORY / "setup.cfg")
    needed = package["options"]["install_requires"].split()
    assert REQUIREMENTS.split() == [line for line in needed if line.startswith(("torch", "transformers"))]
