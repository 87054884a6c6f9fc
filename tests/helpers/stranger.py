"""A stranger: a fresh process with nothing but transformers, in which this package cannot be imported."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER, TriaffineProcessor
from tests.helpers.processes import run_program

TEXT = "The IL-2 gene binds protein. It is DNA!"
OUT_OF_REACH = ("modeling_triaffine", "opt_einsum", "datasets", "evaluate", "accelerate")

SCRIPT = """
import importlib.util, json, sys

text, out_of_reach, questions = json.loads(sys.stdin.read())
sys.modules.update(dict.fromkeys(out_of_reach))  # as if not installed

import torch
from huggingface_hub import constants, snapshot_download
from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoProcessor, pipeline


def load(name, save_to=None, by_all_names=False, **options):
    options["trust_remote_code"] = True
    config = AutoConfig.from_pretrained(name, **options)
    processor = AutoProcessor.from_pretrained(name, **options)
    model = AutoModelForTokenClassification.from_pretrained(name, **options)
    assert model.config.model_type == config.model_type == "triaffine_ner"
    batch = processor(text)
    with torch.no_grad():
        scores = model(**batch).logits
    found = pipeline("token-classification", model=name, **options)(text, threshold=0.2)
    if by_all_names:
        with torch.no_grad():
            torch.testing.assert_close(AutoModel.from_pretrained(name, **options)(**batch).logits, scores)
        for task in (["ner"], []):
            other = pipeline(*task, model=name, **options)(text, threshold=0.2)
            assert [{**entity, "score": 0} for entity in other] == [{**entity, "score": 0} for entity in found]
    if save_to:
        model.save_pretrained(save_to)
        processor.save_pretrained(save_to)
    labels = list(config.id2label.values())
    return {"scores": scores.double().tolist(), "found": found, "labels": labels}


def find(name, **options):
    found = pipeline("ner", model=name, trust_remote_code=True, device="cpu", **options)(text, threshold=0.2)
    return sorted((entity["start"], entity["end"]) for entity in found)


def make_of_objects(name, **options):
    '''What transformers' `pipeline` finds with a model object, its processor given by either name or left out.'''
    model = AutoModelForTokenClassification.from_pretrained(name, trust_remote_code=True, **options)
    processor = AutoProcessor.from_pretrained(name, trust_remote_code=True, **options)
    components = [{"processor": processor}, {"tokenizer": processor}, {}]
    return [pipeline("token-classification", model=model, **given)(text, threshold=0.2) for given in components]


def fingerprint(name):
    '''Of a function with a pipeline, before and after its use, as `datasets` makes it.'''
    for module in out_of_reach:
        if sys.modules.get(module, True) is None and module != "modeling_triaffine":
            del sys.modules[module]
    from datasets.fingerprint import Hasher

    ner = pipeline("token-classification", model=name, trust_remote_code=True)
    find = lambda rows: {"entities": ner(rows["text"])}
    before = Hasher.hash(find)
    find({"text": text})
    return [before, Hasher.hash(find)]


def save_alone(save_to, *, name, **options):
    '''The model without its processor and pipeline, whose code has not been imported.'''
    AutoModel.from_pretrained(name, trust_remote_code=True, **options).save_pretrained(save_to)


def save_elsewhere(folder, name, save_to):
    '''A model loaded by a relative path, from another working directory; and one whose folder is gone.'''
    import os, shutil

    os.chdir(folder)
    for number, loaded in enumerate((name, shutil.copytree(name, name + "-gone"))):
        parts = [loader.from_pretrained(loaded, trust_remote_code=True) for loader in (AutoModel, AutoProcessor)]
        if number:
            shutil.rmtree(loaded)
        os.chdir("/")
        for part in parts:
            part.save_pretrained(save_to + str(number))
        os.chdir(folder)
    return [sorted(os.listdir(save_to + str(number))) for number in range(2)]


def go_offline():
    constants.HF_HUB_OFFLINE = True  # from now on a request raises


def serve(name, requests):
    '''As the toolkit of Inference Endpoints does it: a copy of the repository, and its handler by path.'''
    folder = snapshot_download(name)
    spec = importlib.util.spec_from_file_location("handler.EndpointHandler", folder + "/handler.py")
    sys.path.insert(0, folder)
    module = sys.modules["handler.EndpointHandler"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler = module.EndpointHandler(folder)
    return json.loads(json.dumps([handler(request) for request in requests]))


print(json.dumps([globals()[what](**options) for what, options in questions]))
"""


def ask_a_stranger(
    tmp_path: Path, *questions: tuple[str, dict[str, Any]], environment: dict[str, str] | None = None
) -> list[Any]:
    """Answers to questions, each the name of a function in `SCRIPT` and its arguments."""
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir(exist_ok=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_") and key != "PYTHONPATH"}
    clean |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(nowhere / "home"), "TOKENIZERS_PARALLELISM": "false"}
    asked = json.dumps([TEXT, OUT_OF_REACH, questions])
    printed = run_program(sys.executable, "-c", SCRIPT, cwd=nowhere, env=clean | (environment or {}), input=asked)
    return json.loads(printed.splitlines()[-1])


def expected_answer(folder: Path) -> dict[str, Any]:
    """The answer of this package for the model in a folder: a stranger's answer to ("load", …) is near to it."""
    model, processor = TriaffineForNestedNER.from_pretrained(folder), TriaffineProcessor.from_pretrained(folder)
    with torch.no_grad():
        scores = model(**processor(TEXT)).logits.double().tolist()
    found = NestedNERPipeline(model=model, processor=processor)(TEXT, threshold=0.2)
    assert found
    return {"scores": scores, "found": found, "labels": list(model.config.id2label.values())}
