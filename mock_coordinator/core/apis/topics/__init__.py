"""Topics: create, extend, delete and describe them."""

from __future__ import annotations

__all__: list[str] = []
