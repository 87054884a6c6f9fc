import pytest

from modeling_triaffine.installed_models import find_model, installed_models


def test_folder_comes_before_the_hub_and_a_model_in_it_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("plain", "run/model"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text("{}")
    assert find_model("plain") == "plain"
    assert find_model("run") == "run/model"
    assert find_model("owner/name") == "owner/name"


def test_unknown_name_is_refused_with_the_models_that_there_are():
    for name in ("no-such-model", "./no-such-model"):
        with pytest.raises(FileNotFoundError, match="no-such-model"):
            find_model(name)
    for name, folder in installed_models().items():
        assert find_model(name) == str(folder)
