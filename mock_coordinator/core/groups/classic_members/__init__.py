"""Members of consumer groups that use the classic protocol: they join, catch up and leave."""

from __future__ import annotations

__all__: list[str] = []
