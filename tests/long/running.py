"""Runs the parts that have not passed, one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tests.long.job import Part
from tests.long.state import State

__all__ = ["Play", "Run", "play", "tail"]

_ROOT: Final = Path(__file__).parents[2]
_PATIENCE_S: Final = 60.0
"""A command that is asked to end stops its brokers first."""
_LINES: Final = 40

Play: TypeAlias = Callable[[Part, Path], str]
"""Plays a part with its output in a file; returns what is wrong, nothing if it has passed."""


def play(part: Part, output: Path, patience_s: float = _PATIENCE_S) -> str:
    """In a process of its own, which does not outlive this one's end by an exception."""
    with (
        output.open("wb") as file,
        subprocess.Popen(
            part.command,
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            code = process.wait(part.most_s)
        except subprocess.TimeoutExpired:
            return f"it hung: ended after {part.most_s:g} s"
        finally:
            _end(process, patience_s)
    return f"exit code {code}" if code else ""


def _end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """The process, and what it has left behind: that would disturb the next one."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(output: Path, lines: int = _LINES) -> str:
    """The last lines of a file, indented."""
    found = output.read_text(errors="replace").splitlines()[-lines:] if output.exists() else []
    return "\n".join(f"    {line}" for line in found)


@dataclass(slots=True)
class Run:
    """One run: which parts it plays, and what came of them."""

    state: State
    outputs: Path
    clock: Callable[[], float]
    """Seconds."""
    say: Callable[[str], None]
    play: Play = play
    passed: list[Part] = field(default_factory=list[Part])
    failed: list[Part] = field(default_factory=list[Part])
    left: list[Part] = field(default_factory=list[Part])

    def go(self, parts: Iterable[Part], most_s: float | None) -> None:
        """Play those that have not passed. After ``most_s`` seconds no other one begins."""
        began = self.clock()
        self.left = [part for part in parts if not self.state.has_passed(part)]
        self.outputs.mkdir(parents=True, exist_ok=True)
        while self.left and (most_s is None or self.clock() - began < most_s):
            part = self.left[0]
            self._one(part)
            self.left.remove(part)

    def _one(self, part: Part) -> None:
        output = self.outputs / part.file_name
        began = self.clock()
        wrong = self.play(part, output)
        seconds = self.clock() - began
        if not wrong:
            self.state.note(part, seconds)
            self.passed.append(part)
            self.say(f"passed {seconds:>8.1f} s  {part.name}")
            return
        self.failed.append(part)
        self.say(f"FAILED {seconds:>8.1f} s  {part.name}: {wrong}; the end of {output}:")
        self.say(tail(output))

    def summary(self, before: Sequence[Part]) -> str:
        """The last lines. ``before`` had passed when this run began."""
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.left)} left"
        lines = [f"{counts}, {len(before)} had passed before"]
        if self.left:
            lines.append(f"the same command goes on with {self.left[0].name}")
        lines += [f"FAILED {part.name}: {self.outputs / part.file_name}" for part in self.failed]
        return "\n".join(lines)
