"""What a process of a torture is for."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["COPIERS", "READING", "Role"]


class Role(enum.StrEnum):
    """Its value is the first argument of the process."""

    BY_HAND = "by-hand"
    """Copies exactly once: a consumer, a producer, and a loop of the application."""
    PROCESSOR = "processor"
    """Copies exactly once: an ``ExactlyOnceProcessor``."""
    READER = "reader"
    """Processes at least once: takes many records, then commits."""
    AUTO_READER = "auto-reader"
    """Processes at least once: takes one record after the other, commits by itself."""


COPIERS: Final = (Role.BY_HAND, Role.PROCESSOR)
READING: Final = (Role.READER, Role.AUTO_READER)
