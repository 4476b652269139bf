"""Classic members in consumer groups, and groups that change their type while they work."""

from __future__ import annotations

__all__: list[str] = []
