"""`import modeling_triaffine` loads little, and its models load through the Auto classes in any order of imports."""

import sys

import pytest

import modeling_triaffine
from tests.helpers.processes import run_program

LOAD = """
from transformers import AutoModel, AutoModelForTokenClassification, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY
models = [auto.from_pretrained(folder) for auto in (AutoModel, AutoModelForTokenClassification)]
task = PIPELINE_REGISTRY.supported_tasks["token-classification"]["impl"]
known = (*map(type, models), type(AutoProcessor.from_pretrained(folder)), models[0].push_repository, task)
print(*(part.__module__ for part in known))
import modeling_triaffine
assert isinstance(models[1], modeling_triaffine.TriaffineForNestedNER), "a module was imported twice"
"""

SLOW_IMPORT_IN_ANOTHER_THREAD = """
import tempfile, threading
import modeling_triaffine, transformers
threading.ended = threading.Event()
transformers.__path__.append(tempfile.mkdtemp())
with open(f"{transformers.__path__[-1]}/slow.py", "w") as file:
    file.write("import threading; threading.ended.wait()")
threading.Thread(target=__import__, args=["transformers.slow"], daemon=True).start()
"""


@pytest.mark.parametrize(
    "order",
    [
        SLOW_IMPORT_IN_ANOTHER_THREAD,
        "import modeling_triaffine; from transformers import pipeline",  # before the Auto classes are complete
        "import importlib, modeling_triaffine; importlib.reload(modeling_triaffine)",
        pytest.param("import transformers.models.auto; import modeling_triaffine", marks=pytest.mark.nightly),
        pytest.param("import modeling_triaffine.model.pipeline_triaffine", marks=pytest.mark.nightly),
        pytest.param("import modeling_triaffine.new_model", marks=pytest.mark.nightly),
    ],
)
def test_models_load_in_any_order_of_imports(saved_model, order):
    modules = run_program(sys.executable, "-c", f"folder = {str(saved_model)!r}\n{order}{LOAD}").split()
    assert [module.split(".")[0] for module in modules] == ["modeling_triaffine"] * 5


@pytest.mark.parametrize(
    ("folder", "used"),
    [
        ("version", "dir(sys.modules['modeling_triaffine'])"),
        ("evaluation", "score_entities([[]], [[]])"),
        ("data.schema", "RecordChecker('bars.txt')"),
        ("drawing", "draw_entities_html('a', [])"),
        ("commands.predict", "read_rows('-', None, TextOptions())"),
        ("commands.train", "train"),
    ],
)
def test_what_computes_nothing_needs_no_library_that_does(folder, used):
    heavy = "{'torch', 'transformers', 'datasets'} & set(sys.modules)"
    program = f"import sys; from modeling_triaffine.{folder} import *; {used}; print({heavy})"
    assert run_program(sys.executable, "-c", program) == "set()\n"


@pytest.mark.contract
def test_every_public_name_is_there():
    for name in modeling_triaffine.__all__:
        assert getattr(modeling_triaffine, name) is not None
        assert name in dir(modeling_triaffine)
    assert modeling_triaffine.data.load_nested_ner is modeling_triaffine.load_nested_ner
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = modeling_triaffine.nothing
