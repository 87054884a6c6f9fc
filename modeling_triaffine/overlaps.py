"""Policies for overlapping entities from outside of this package: registered by a script, or of installed packages.

They join those of `model/kinds_triaffine.py`, and what they return is checked. This file imports no library.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .entry_points import owner_of
from .model.kinds_triaffine import OVERLAPS, Keep, OverlapPolicy, WordEntity, overlap_policy

logger = logging.getLogger(__name__)

# Installed packages declare their policies as entry points of this group: a name, and its function.
OVERLAP_GROUP = "modeling_triaffine.overlap_policies"


class PolicyError(ValueError):
    """A policy from outside failed, or returned something else than entities that it was given."""


def register_overlap_policy(name: str, keep: Keep) -> None:
    """Makes a policy known in this process, by this name for `overlap`; help shows the first line of its docstring.

    A second registration from the same module replaces the first: cells of a notebook are run again.

    Raises:
        ValueError: there is a policy of this name already, of this or another package or module.
    """
    find_installed_policies()
    policy = _checked(name, keep, f"registered by {getattr(keep, '__module__', None)}")
    if name in OVERLAPS and OVERLAPS[name].owner != policy.owner:
        raise ValueError(f"There is a policy {name!r} for overlaps already. Register yours under another name.")
    OVERLAPS[name] = policy


def overlap_names() -> list[str]:
    """The names of all policies, those of installed packages among them."""
    find_installed_policies()
    return [*OVERLAPS]


def overlap_policies() -> dict[str, OverlapPolicy]:
    """All policies by name; one of an installed package that cannot be loaded is left out with a warning."""
    policies = {}
    for name in overlap_names():
        try:
            policies[name] = overlap_policy(name)
        except ValueError as error:
            logger.warning("%s", error)
    return policies


@cache
def find_installed_policies() -> None:
    """Adds the policies of installed packages, once; one whose name is taken is left out with a warning."""
    for point in entry_points(group=OVERLAP_GROUP):
        owner = owner_of(point)
        if point.name in OVERLAPS:
            taken = "The policy %r for overlaps, %s, is left out: there is one of this name. Rename it."
            logger.warning(taken, point.name, owner)
        else:
            OVERLAPS[point.name] = _not_yet_loaded(point, owner)


def _not_yet_loaded(point: EntryPoint, owner: str) -> OverlapPolicy:
    """A policy whose first call puts the loaded one in its place; it has no meaning until then."""

    def load_and_keep(entities: list[WordEntity]) -> Iterable[WordEntity]:
        try:
            OVERLAPS[point.name] = _checked(point.name, point.load(), owner)
        except Exception as error:
            raise ValueError(
                f"`overlap` is {point.name!r}, a policy {owner}, which cannot be loaded ({type(error).__name__}: "
                f"{error}). Correct or uninstall it."
            ) from error
        return OVERLAPS[point.name].keep(entities)

    return OverlapPolicy("", load_and_keep, owner)


def _checked(name: str, keep: Any, owner: str) -> OverlapPolicy:
    """A policy that keeps some of what it is given, each once and unchanged, or else raises PolicyError."""
    where = f"The policy {name!r} for overlaps, {owner},"
    remedy = "It must return some of the entities that it is given; correct it, or choose another policy."

    def keep_checked(entities: list[WordEntity]) -> list[WordEntity]:
        if not entities:
            return []
        before = Counter(map(_facts, entities))
        try:
            kept = [*keep(entities)]
            added = Counter(map(_facts, kept)) - before
        except Exception as error:
            raise PolicyError(f"{where} failed ({type(error).__name__}: {error}). {remedy}") from error
        if added:
            entity = dict(zip(WordEntity.__annotations__, next(iter(added)), strict=True))
            raise PolicyError(f"{where} returned {entity}, which it was not given, or only once. {remedy}")
        return kept

    return OverlapPolicy((keep.__doc__ or "").strip().partition("\n")[0], keep_checked, owner)


def _facts(entity: WordEntity) -> tuple[int, int, str, float]:
    return entity["start"], entity["end"], entity["type"], entity["score"]
