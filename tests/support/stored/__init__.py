"""What outlives a process, as an earlier state of the repository wrote it: ``tests/fixtures``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["FIXTURES"]

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
