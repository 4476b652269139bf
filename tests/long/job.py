"""A job: one command, or the same command once for each of its parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["Job", "Part", "in_turns"]

_HOLE: Final = "{}"
_MOST_S: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Part:
    """What runs at once: a run that is stopped loses no more than this."""

    job: str
    label: str
    command: tuple[str, ...]
    most_s: float
    """A command that takes longer hangs."""

    @property
    def name(self) -> str:
        """As it is printed and remembered."""
        return f"{self.job} {self.label}".rstrip()

    @property
    def file_name(self) -> str:
        """Of its output."""
        return re.sub(r"[^\w.-]+", "-", self.name) + ".log"


@dataclass(frozen=True, slots=True)
class Job:
    """Arguments of Python, in which ``{}`` stands for the label of a part."""

    name: str
    what: str
    arguments: str
    labels: tuple[str, ...] = ("",)
    most_s: float = _MOST_S

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels) or not self.labels:
            raise ValueError(f"the parts of {self.name} need labels that differ")
        if (_HOLE in self.arguments) != (self.labels != ("",)):
            raise ValueError(f"{self.name} has a {_HOLE} in its arguments or no labels, not both")

    @property
    def parts(self) -> tuple[Part, ...]:
        """In their order."""
        return tuple(
            Part(self.name, label, self._command(label), self.most_s) for label in self.labels
        )

    def _command(self, label: str) -> tuple[str, ...]:
        words = (word.replace(_HOLE, label) for word in self.arguments.split())
        return (sys.executable, *words)


def in_turns(jobs: Iterable[Job]) -> list[Part]:
    """The first part of each job, then the second of each: a run that is stopped early has done
    something of every kind."""
    numbered = [(number, part) for job in jobs for number, part in enumerate(job.parts)]
    return [part for _, part in sorted(numbered, key=lambda each: each[0])]
