"""Topics: their names and ids, and how they are created and deleted."""

from __future__ import annotations

__all__: list[str] = []
