"""Policies for overlapping entities that a script or another package brings."""

import sys
from types import FunctionType
from unittest.mock import patch

import pytest

from modeling_triaffine.model.kinds_triaffine import OVERLAPS, overlap_policy, resolve_overlaps
from modeling_triaffine.overlaps import (
    OVERLAP_GROUP,
    PolicyError,
    find_installed_policies,
    overlap_names,
    overlap_policies,
    register_overlap_policy,
)

BUILT_IN = [*OVERLAPS]


@pytest.fixture(autouse=True)
def own_register():
    with patch.dict(OVERLAPS):
        yield


def found():
    """Two entities of one word, and one that has both."""
    places = (0, 2, "DNA"), (1, 2, "protein"), (0, 1, "DNA")
    return [{"start": start, "end": end, "type": kind, "score": 0.5} for start, end, kind in places]


def keep_short(entities):
    """those of one word

    In words, wherever they come from.
    """
    return [entity for entity in entities if entity["end"] - entity["start"] == 1]


def test_a_registered_policy_is_one_like_the_others():
    register_overlap_policy("short", keep_short)
    assert OVERLAPS["short"].meaning == "those of one word"
    assert [(one["start"], one["end"]) for one in resolve_overlaps(found(), "short")] == [(0, 1), (1, 2)]
    of_another = FunctionType(keep_short.__code__, {"__name__": "another"})
    for name, keep in (("flat", keep_short), ("short", of_another)):
        with pytest.raises(ValueError, match=f"policy '{name}' for overlaps already"):
            register_overlap_policy(name, keep)
    with pytest.raises(ValueError, match=r"'flat'.*, 'short'"):
        overlap_policy("shrot")


def install(monkeypatch, folder, **policies):
    """A package of these policies, each the code of a function's body, and of a broken one."""
    functions = "".join(f"def {name}_(entities):\n    {body}\n" for name, body in policies.items())
    (folder / "own_policies.py").write_text(functions)
    (folder / "own-1.dist-info").mkdir()
    (folder / "own-1.dist-info" / "METADATA").write_text("Name: own\nVersion: 1\n")
    points = [f"[{OVERLAP_GROUP}]", *(f"{name} = own_policies:{name}_" for name in policies)]
    (folder / "own-1.dist-info" / "entry_points.txt").write_text("\n".join([*points, "broken = own_policies:nowhere"]))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_policies", raising=False)
    find_installed_policies.cache_clear()


def test_an_installed_policy_is_found_by_its_name(monkeypatch, tmp_path, caplog):
    install(monkeypatch, tmp_path, nothing="return []", flat="return entities")
    assert overlap_names() == [*BUILT_IN, "nothing", "broken"]
    assert "'flat' for overlaps, of the package own 1, is left out: there is one of this name" in caplog.text
    assert resolve_overlaps(found(), "nothing") == []
    assert [*overlap_policies()] == [*BUILT_IN, "nothing"]
    assert "'broken', a policy of the package own 1, which cannot be loaded (AttributeError" in caplog.text
    with pytest.raises(ValueError, match="policy 'nothing' for overlaps already"):
        register_overlap_policy("nothing", keep_short)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("pass", "failed (TypeError: "),
        ("return [one['begin'] for one in entities]", "failed (KeyError: 'begin')"),
        ("return [one['start'] for one in entities]", "failed (TypeError: "),
        ("return [{'start': 0, 'end': 3}]", "failed (KeyError: 'type')"),
        ("return entities[:1] * 2", "returned {'start': 0, 'end': 2, 'type': 'DNA', "),
        ("return [{**one, 'end': 9} for one in entities]", "returned {'start': 0, 'end': 9, "),
        ("[one.update(end=9) for one in entities]; return entities", "returned {'start': 0, 'end': 9, "),
    ],
)
def test_a_policy_that_does_not_return_some_of_its_entities(monkeypatch, tmp_path, body, problem):
    install(monkeypatch, tmp_path, odd=body)
    find_installed_policies()
    with pytest.raises(PolicyError) as raised:
        resolve_overlaps(found(), "odd")
    assert f"The policy 'odd' for overlaps, of the package own 1, {problem}" in str(raised.value)
    assert "It must return some of the entities that it is given" in str(raised.value)


def test_a_policy_is_registered_again_by_the_same_module():
    register_overlap_policy("short", keep_short)
    register_overlap_policy("short", lambda entities: entities[:1])  # the cell of a notebook, changed
    assert resolve_overlaps(found(), "short") == found()[:1]
