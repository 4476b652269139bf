"""Who a member is, and what follows when it says something new."""

from __future__ import annotations

__all__: list[str] = []
