"""``docs/reference/behaviour.md`` says what the profiles and the scenario files say."""

from __future__ import annotations

import re
from dataclasses import fields
from enum import Enum, IntEnum
from itertools import pairwise

from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import PROFILES
from tests.scenarios import script
from tests.scenarios.script import Script
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "behaviour.md"
SCENARIOS = ROOT / "tests" / "scenarios" / "coordinator"
RELEASE_DATA = frozenset(
    [
        "release",
        "line",
        "name",
        "api_versions",
        "supported_features",
        "finalized_features",
        "finalized_features_epoch",
    ]
)
"""Fields that say which release it is and what it offers; coverage.md has the versions."""


def _rows(first_cell: str) -> dict[str, list[str]]:
    """The rows of all tables whose first cell matches, by what its group captures."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        key = re.fullmatch(first_cell, cells[0])
        if line.startswith("| ") and key:
            assert key[1] not in found, f"{key[1]} has two rows"
            found[key[1]] = cells
    return found


def _shown(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case IntEnum():
            return value.name
        case Enum():
            return str(value.value)
        case str():
            return f"`{value}`"
        case _:
            return str(value)


def _history(fact: str) -> str:
    """What a fact was in the oldest line, and where it changed: ``no, **4.2** yes``."""
    values = [(name, _shown(getattr(profile, fact))) for name, profile in PROFILES.items()]
    changes = [f"**{name}** {now}" for (_, was), (name, now) in pairwise(values) if now != was]
    return ", ".join([values[0][1], *changes])


def test_every_fact_is_on_the_page_with_its_history() -> None:
    facts = [fact.name for fact in fields(Profile) if fact.name not in RELEASE_DATA]
    rows = _rows(r"`(\w+)`")
    assert sorted(rows) == sorted(facts)
    wrong = [f"{fact}: {_history(fact)}" for fact in facts if rows[fact][2] != _history(fact)]
    assert not wrong, "\n".join(wrong)


def test_every_scenario_is_on_the_page_with_the_lines_that_differ() -> None:
    paths = {path.name.split("_")[0]: path for path in SCENARIOS.glob("*.txt")}
    rows = _rows(r"\[(\w+)\]\(.*\)")
    assert sorted(rows) == sorted(paths)
    wrong = [
        f"{number}: {expected}"
        for number, path in paths.items()
        if rows[number][3].rstrip(" |") != (expected := _differs_from(path.name))
    ]
    assert not wrong, "\n".join(wrong)


def _differs_from(name: str) -> str:
    """The lines from which on a scenario prints something else, pairs of epochs apart."""
    file = Script.read(SCENARIOS / name)
    changes = {
        profiles[0]
        for block in file.blocks
        for profiles, _ in block.sections
        if profiles[0] != file.profiles[0]
    }
    since = [] if file.profiles == script.PROFILES else [f"since {file.profiles[0]}"]
    return ", ".join([*since, *sorted(changes, key=script.PROFILES.index)])
