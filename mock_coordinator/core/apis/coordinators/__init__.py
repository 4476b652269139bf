"""APIs of group and transaction coordinators."""

from __future__ import annotations

__all__: list[str] = []
