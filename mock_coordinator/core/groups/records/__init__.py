"""The records of groups, and the values in them."""

from __future__ import annotations

__all__: list[str] = []
