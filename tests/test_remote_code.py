"""Saved folders and Hub repositories load in a fresh process that cannot import the package, with equal scores."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoProcessor
from transformers.dynamic_module_utils import get_imports, get_relative_imports

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor, configuration_triaffine
from tests.micro_training import micro_records, script_environment, write_lines, write_recipe
from tests.tiny import tiny_model, tiny_processor

if TYPE_CHECKING:
    from tests.hub_server import LoopbackHub

pytest_plugins = ("tests.hub_server",)

TEXT = "The IL-2 gene binds protein. It is DNA!"

# What a stranger does: nothing but transformers, and the package out of reach.
STRANGER = """
import json, sys

for name in ("modeling_triaffine", "opt_einsum", "datasets", "evaluate", "accelerate"):
    sys.modules[name] = None  # as if not installed

import torch
from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoProcessor, pipeline

name, text, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
options["trust_remote_code"] = True
config = AutoConfig.from_pretrained(name, **options)
processor = AutoProcessor.from_pretrained(name, **options)
batch = processor(text)
scores = []
for auto_class in (AutoModel, AutoModelForTokenClassification):
    model = auto_class.from_pretrained(name, **options)
    assert model.config.model_type == config.model_type == "triaffine_ner"
    with torch.no_grad():
        scores.append(model(**batch).logits.double().tolist())
found = pipeline("token-classification", model=name, **options)(text, threshold=0.2)
same = pipeline(model=name, **options)(text, threshold=0.2)
assert found == same
if len(sys.argv) > 4:
    model.save_pretrained(sys.argv[4])
    processor.save_pretrained(sys.argv[4])
print(json.dumps({"scores": scores, "found": found, "labels": config.id2label}))
"""


def ask_a_stranger(name, tmp_path, environment=None, again=None, **options):
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir(exist_ok=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_") and key != "PYTHONPATH"}
    clean |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(nowhere / "home"), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-c", STRANGER, str(name), TEXT, json.dumps(options), *([str(again)] if again else [])]
    result = subprocess.run(
        command, cwd=nowhere, env=clean | (environment or {}), capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def own_answer(model, processor):
    with torch.no_grad():
        scores = model(**processor(TEXT)).logits.double().tolist()
    return {
        "scores": [scores, scores],
        "found": NestedNERPipeline(model=model, processor=processor)(TEXT, threshold=0.2),
    }


def check(answer, expected):
    assert answer["scores"] == expected["scores"]
    assert answer["found"] == expected["found"]
    assert answer["found"]
    assert answer["labels"] == {"0": "DNA", "1": "protein", "2": "None"}


@pytest.fixture
def pair(encoder):
    processor = tiny_processor(encoder)
    processor.build_vocabularies([{"tokens": ["gene", "binds"], "pos": []}], ["chars"])
    sizes = {"char_vocab_size": len(processor.vocabularies["chars"]), "char_embedding_size": 3}
    return tiny_model(encoder, **sizes, char_lstm_hidden_size=2), processor


def test_folder(pair, tmp_path):
    model, processor = pair
    model.save_pretrained(tmp_path / "saved")
    processor.save_pretrained(tmp_path / "saved")
    expected = own_answer(model, processor)
    # What the stranger saves again loads for the next one.
    check(ask_a_stranger(tmp_path / "saved", tmp_path, again=tmp_path / "again"), expected)
    check(ask_a_stranger(tmp_path / "again", tmp_path), expected)
    files = {path.name for path in (tmp_path / "saved").iterdir()}
    assert {"config.json", "model.safetensors", "processor_config.json", "vocabularies.json", "tokenizer.json"} <= files
    assert all(str(tmp_path) not in path.read_text() for path in (tmp_path / "saved").glob("*.json"))


def test_remote_code_imports_only_what_a_stranger_has():
    """Flat siblings and guarded imports only: the static check that transformers makes of remote code."""
    folder = Path(configuration_triaffine.__file__).parent
    for name in configuration_triaffine.REMOTE_CODE_FILES:
        needed = set(get_imports(folder / name)) - set(sys.stdlib_module_names)
        assert needed <= {"torch", "transformers", "tokenizers", "numpy", "safetensors"}
        assert {f"{sibling}.py" for sibling in get_relative_imports(folder / name)} <= set(
            configuration_triaffine.REMOTE_CODE_FILES
        )


def test_hub(pair, tmp_path, hub: "LoopbackHub"):
    """push_to_hub with the real client, loaded by a stranger; a second push updates, a pinned revision stays."""
    model, processor = pair
    push = """
import sys
from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
folder, name = sys.argv[1:]
TriaffineForNestedNER.from_pretrained(folder).push_to_hub(name, private=True)
TriaffineProcessor.from_pretrained(folder).push_to_hub(name)
"""
    root = Path(__file__).resolve().parents[1]

    def publish(seed):
        with torch.no_grad():
            model.head.label_bias.copy_(torch.randn(3, generator=torch.Generator().manual_seed(seed)))
        folder = tmp_path / f"version{seed}"
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
        environment = os.environ | hub.environment()
        command = [sys.executable, "-c", push, str(folder), "someone/nested"]
        result = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert result.returncode == 0, result.stderr[-3000:]
        return own_answer(TriaffineForNestedNER.from_pretrained(folder), AutoProcessor.from_pretrained(folder))

    first = publish(1)
    check(ask_a_stranger("someone/nested", tmp_path, hub.environment()), first)
    repository = hub.repositories["someone/nested"]
    assert repository.private
    old = repository.branches["main"]
    second = publish(2)
    assert second["scores"] != first["scores"]
    check(ask_a_stranger("someone/nested", tmp_path, hub.environment()), second)
    check(ask_a_stranger("someone/nested", tmp_path, hub.environment(), revision=old), first)


def test_training_pushes_a_repository_with_its_card(tmp_path, hub: "LoopbackHub"):
    """`--push_to_hub` of a training: the card tells labels, scores, how to load and widget examples, and all loads."""
    recipe = write_recipe(tmp_path / "recipe", training={"num_train_epochs": 1, "use_cpu": True})
    options = {
        "--recipe": recipe,
        "--train_file": write_lines(tmp_path / "train.jsonl", micro_records(24)),
        "--validation_file": write_lines(tmp_path / "dev.jsonl", micro_records(6, seed=1)),
        "--output_dir": tmp_path / "out",
        "--hub_model_id": "someone/trained",
    }
    script = Path(__file__).resolve().parents[1] / "examples" / "train.py"
    command = [
        sys.executable,
        str(script),
        "--push_to_hub",
        *(str(part) for option in options.items() for part in option),
    ]
    environment = script_environment(tmp_path) | hub.environment()
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    repository = hub.repositories["someone/trained"]
    _, files = repository.resolve("main")
    assert not [name for name in files if name.startswith("checkpoint") or name.endswith((".bin", ".pt", ".pth"))]
    card = ModelCard(files["README.md"].content.decode())
    assert card.data.pipeline_tag == "token-classification"
    assert len(card.data.widget) == 3
    assert {result.metric_type for result in card.data.eval_results} == {"precision", "recall", "f1"}
    for text in ("`DNA`, `protein`", 'model="someone/trained", trust_remote_code=True', "widget"):
        assert text in card.text
    answer = ask_a_stranger("someone/trained", tmp_path, hub.environment())
    assert answer["labels"] == {"0": "DNA", "1": "protein", "2": "None"}
    saved = (
        TriaffineForNestedNER.from_pretrained(tmp_path / "out"),
        TriaffineProcessor.from_pretrained(tmp_path / "out"),
    )
    assert answer["scores"] == own_answer(*saved)["scores"]


def test_processor_and_configuration_push_themselves_whole(pair, hub: "LoopbackHub", tmp_path):
    model, processor = pair
    script = """
import sys
from modeling_triaffine import TriaffineConfig, TriaffineProcessor
folder = sys.argv[1]
TriaffineProcessor.from_pretrained(folder).save_pretrained(folder, push_to_hub=True, repo_id="someone/processor")
TriaffineConfig.from_pretrained(folder).save_pretrained(folder, push_to_hub=True, repo_id="someone/config")
"""
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    command = [sys.executable, "-c", script, str(tmp_path)]
    environment = script_environment(tmp_path) | hub.environment()
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    code = set(configuration_triaffine.REMOTE_CODE_FILES)
    _, pushed = hub.repositories["someone/processor"].resolve("main")
    assert code | {"vocabularies.json", "processor_config.json", "tokenizer.json"} <= set(pushed)
    _, pushed = hub.repositories["someone/config"].resolve("main")
    assert code | {"config.json"} <= set(pushed)
