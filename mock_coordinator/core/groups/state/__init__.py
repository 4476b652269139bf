"""The state of groups and members between two requests."""

from __future__ import annotations

__all__: list[str] = []
