"""What `import modeling_triaffine` loads, and that its models load through the Auto classes in any order of imports."""

import subprocess
import sys

import pytest

import modeling_triaffine

LOAD = """
model, processor = {auto}.from_pretrained(folder), AutoProcessor.from_pretrained(folder)
from transformers.pipelines import PIPELINE_REGISTRY
task = PIPELINE_REGISTRY.supported_tasks["token-classification"]["impl"]
print(*(known.__module__ for known in (type(model), type(processor), model.push_repository, task)))
"""
AUTO_CLASSES = "from transformers import AutoModel, AutoModelForTokenClassification, AutoProcessor"
# Most first imports from transformers import the Auto classes while they are half done themselves: "pipelines first".
ORDERS = {
    "pipelines first": f"import modeling_triaffine\nfrom transformers import pipeline\n{AUTO_CLASSES}",
    "transformers first": f"{AUTO_CLASSES}\nimport modeling_triaffine",
    "package first": f"import modeling_triaffine\n{AUTO_CLASSES}",
    "a module of the model first": f"import modeling_triaffine.model.pipeline_triaffine\n{AUTO_CLASSES}",
}
OFTEN = pytest.param("pipelines first", "AutoModelForTokenClassification")
RARELY = [pytest.param(order, "AutoModel", marks=pytest.mark.nightly) for order in ORDERS]


def run(program: str) -> str:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize(("order", "auto_class"), [OFTEN, *RARELY])
def test_models_load_in_any_order_of_imports(saved_model, order, auto_class):
    modules = run(f"folder = {str(saved_model)!r}\n{ORDERS[order]}{LOAD.format(auto=auto_class)}").split()
    assert [module.split(".")[0] for module in modules] == ["modeling_triaffine"] * 4


def test_the_import_loads_no_library():
    program = (
        "import modeling_triaffine, sys; dir(modeling_triaffine); print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert run(program) == "set()\n"


def test_every_public_name_is_there():
    for name in modeling_triaffine.__all__:
        assert getattr(modeling_triaffine, name) is not None
        assert name in dir(modeling_triaffine)
    assert modeling_triaffine.data.load_nested_ner is modeling_triaffine.load_nested_ner
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = modeling_triaffine.nothing
