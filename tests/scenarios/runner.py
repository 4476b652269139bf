"""Plays scenario files and compares what they print with what they say."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.scenarios.commands import run
from tests.scenarios.notation import NotationError
from tests.scenarios.scenario_run import Backend, ScenarioRun, Unplayable
from tests.scenarios.script import Script, ScriptError, expand

__all__ = ["FOLDER", "Printed", "differences", "play", "scripts"]

FOLDER: Final = Path(__file__).parent / "coordinator"

_LOOKS: Final = frozenset({"describe", "state", "targets", "timers", "records"})
"""Commands that print something of members and are no reason for any answer."""

_MAY_WAIT: Final = frozenset({"join-group", "sync-group"})
"""Commands that the member itself may have to wait for. What others print of the members that they
name is their own answer."""

Printed = Mapping[int, list[str] | None]
"""Line of a block -> what its command printed; ``None`` where this backend cannot show it."""


def scripts() -> list[Path]:
    """All scenario files, by number."""
    return sorted(FOLDER.rglob("*.txt"))


def play(script: Script, backend: Backend, *, suffix: str = "") -> Printed:
    """Run every command of a file. Raises ``ScriptError`` for one that makes no sense."""
    scenario = ScenarioRun(backend, suffix)
    printed: dict[int, list[str] | None] = {}
    for block in script.blocks:
        backend.expect(_answered(block.command, block.expected(backend.profile) or ()))
        try:
            printed[block.line] = run(scenario, expand(block.command, backend.profile))
        except Unplayable:
            printed[block.line] = None
        except NotationError as err:
            raise ScriptError(f"{script.path.name}:{block.line}: {err}") from err
    return printed


def _answered(command: str, lines: Sequence[str]) -> set[str]:
    """Whose waiting requests are answered, if a command prints these lines."""
    name, *named = command.split()
    if name in _LOOKS:
        return set()
    said = (line.partition(": ") for line in lines if not line.startswith(" "))
    found = {who for who, colon, what in said if colon and what != "waits"}
    return found if name in _MAY_WAIT else found.difference(named)


def differences(script: Script, profile: str, printed: Printed) -> list[str]:
    """Where a run printed something else than the file says; a few readable lines each."""
    expected = {block.line: block.expected(profile) for block in script.blocks}
    return compare(script, profile, printed, expected, ("file", "played"))


def compare(
    script: Script, profile: str, left: Printed, right: Printed, names: tuple[str, str]
) -> list[str]:
    """Where two runs of a file printed something else; ``right`` is what ought to be."""
    found: list[str] = []
    for block in script.blocks:
        got, wanted = left.get(block.line), right.get(block.line)
        if got is None or got == wanted:
            continue
        found.append(f"{script.path.name}:{block.line} on {profile}: {block.command}")
        found += _diff(wanted or ["(no output section for this profile)"], got, names)
    return found


def _diff(wanted: Sequence[str], got: Sequence[str], names: tuple[str, str]) -> list[str]:
    lines = difflib.unified_diff(wanted, got, *names, lineterm="", n=3)
    return ["    " + line for line in lines if not line.startswith("@@")]
