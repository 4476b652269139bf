"""Members of the classic protocol in consumer groups: they join, catch up and leave."""

from __future__ import annotations

__all__: list[str] = []
