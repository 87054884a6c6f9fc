"""The notebook runs from its first cell to its last, and the copy that is kept shows what it printed and drew."""

from pathlib import Path

import nbformat

from tests.helpers.processes import PATIENCE

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "quickstart.ipynb"


def outputs(notebook, kind: str) -> list[str]:
    return [
        output["data"][kind]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if kind in output.get("data", {})
    ]


def test_it_runs_as_it_is_but_for_the_length_of_the_training(tmp_path):
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("num_train_epochs=16", "max_steps=2")
    NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()

    assert any("nested-entities" in html for html in outputs(notebook, "text/html"))
    assert (tmp_path / "quickstart" / "model" / "model.safetensors").is_file()


def test_the_kept_copy_was_run_in_order_and_names_no_folder_of_a_machine():
    text = NOTEBOOK.read_text(encoding="utf-8")
    for folder in ("/home/", "/root/", "/Users/", "/tmp/", "/var/", "site-packages"):
        assert folder not in text
    code = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
