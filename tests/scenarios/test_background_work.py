"""A file waits for what a broker does in the background, before it goes on.

The bundled coordinator does it at once. A broker does it when it finds the time, so that a file
which forgot to wait would be right on most days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mock_coordinator.core.groups.records.state_records import RegularExpression
from mock_coordinator.core.inputs import Input
from tests.scenarios.commands import run
from tests.scenarios.core_backend import CoreBackend
from tests.scenarios.runner import scripts
from tests.scenarios.scenario_run import ScenarioRun
from tests.scenarios.script import Script, expand
from tests.scenarios.suite import broker_settings

READS_THE_LOG = ("records", "state")


class Busy(CoreBackend):
    """Notes the commands that came while a broker may still have been resolving expressions."""

    def __init__(self, profile: str, settings: Mapping[str, str]) -> None:
        self.command = ""
        self.too_early: list[str] = []
        self._at_work = False
        self._known = 0
        super().__init__(profile, settings)

    def come(self, command: str) -> None:
        """The file goes on."""
        self.command = command
        if command.startswith(READS_THE_LOG):
            self._note()

    def _note(self) -> None:
        if self._at_work:
            self.too_early.append(self.command)
            self._at_work = False

    def _step(self, event: Input) -> None:
        super()._step(event)
        fresh, self._known = self.log()[self._known :], len(self.log())
        self._at_work |= any(
            isinstance(record, RegularExpression) and record.value is not None for record in fresh
        )

    def request(self, message: Any, version: int) -> Any:
        self._note()
        return super().request(message, version)

    def send(self, sender: str, message: Any, version: int) -> Any:
        self._note()
        return super().send(sender, message, version)

    def crash(self) -> None:
        self._note()
        super().crash()

    def settle(self) -> None:
        self._at_work = False


def too_early(script: Script, profile: str) -> Sequence[str]:
    """The commands that a busy broker might answer in another way."""
    backend = Busy(profile, broker_settings(script, profile))
    scenario = ScenarioRun(backend)
    for block in script.blocks:
        backend.come(block.command)
        run(scenario, expand(block.command, profile))
    return backend.too_early


@pytest.mark.parametrize(
    "path", [each for each in scripts() if "regex" in each.read_text("utf-8")], ids=lambda p: p.stem
)
def test_a_file_waits_for_expressions(path: Path) -> None:
    script = Script.read(path)
    found = {profile: too_early(script, profile) for profile in script.profiles}
    assert not any(found.values()), f"settle first: {found}"


def test_one_that_does_not_is_found(tmp_path: Path) -> None:
    path = tmp_path / "X01_hasty.txt"
    blocks = "topic create foo partitions=1", "join A regex=foo.*", "heartbeat A", "records"
    path.write_text("# X01: hasty\n#\n# none\n\n" + "".join(f"{b}\n----\nok\n\n" for b in blocks))
    assert too_early(Script.read(path), "4.4") == ["heartbeat A"]
