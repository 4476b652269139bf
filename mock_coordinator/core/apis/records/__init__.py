"""Records: produced, fetched, found by time, deleted."""

from __future__ import annotations

__all__: list[str] = []
