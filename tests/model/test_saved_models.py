"""Models that an earlier revision saved: they load, with the code saved beside them and with that of today.

The models in `data/saved` are tiny ones of random weights, which revision 4245d20 saved; `code.zip` has the code beside
them, and each `expected.json` what the model then made of the text.
"""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from modeling_triaffine import NestedNERPipeline, TriaffineConfig
from tests.helpers.portable import near
from tests.helpers.stranger import TEXT, ask_a_stranger, expected_answer

SAVED = Path(__file__).parent / "data" / "saved"
MODELS = ("full", "low_rank")
EXPECTED = {name: json.loads((SAVED / name / "expected.json").read_text(encoding="utf-8")) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_it_loads_with_the_package(name):
    assert expected_answer(SAVED / name) == near(EXPECTED[name]["loaded"])
    assert NestedNERPipeline(model=SAVED / name, device="cpu")(TEXT) == near(EXPECTED[name]["likeliest"])


def test_it_loads_without_the_package(tmp_path):
    """By its own code, and by today's, which computes in bfloat16 or, if faster, in float32."""
    questions = []
    for name in MODELS:
        own, todays = tmp_path / "own" / name, tmp_path / "todays" / name
        for folder in (own, todays):
            shutil.copytree(SAVED / name, folder)
        with zipfile.ZipFile(SAVED / "code.zip") as code:
            code.extractall(own)
        TriaffineConfig.from_pretrained(todays).save_pretrained(todays)
        questions += [("load", {"name": str(own)}), ("load", {"name": str(todays)})]
    lower = "find", {"name": str(todays), "dtype": "bfloat16"}
    *answers, in_bfloat16 = ask_a_stranger(tmp_path, *questions, lower)
    assert answers == near([EXPECTED[name]["loaded"] for name in MODELS for _ in ("own", "todays")])
    assert in_bfloat16
