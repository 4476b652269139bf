"""The coordinator of groups: requests in, answers and records out."""

from __future__ import annotations

__all__: list[str] = []
