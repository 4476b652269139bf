"""Release lines of Kafka, compared as numbers: 4.10 comes after 4.9.

Each difference between lines is a field of ``Profile`` or a row of a settings table. Other code
must not depend on the line itself.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ReleaseLine"]


class ReleaseLine(NamedTuple):
    """The line of a release: ``ReleaseLine.of("4.10.1") > ReleaseLine.of("4.9")``."""

    major: int
    minor: int

    @classmethod
    def of(cls, release: str) -> ReleaseLine:
        """The line of ``"4.3"`` or ``"4.3.1"``. Raises ``ValueError`` for anything else."""
        major, minor, *_ = release.split(".")
        return cls(int(major), int(minor))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
