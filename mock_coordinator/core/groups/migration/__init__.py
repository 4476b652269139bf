"""Classic members in consumer groups, and online changes of a group's type."""

from __future__ import annotations

__all__: list[str] = []
