"""The logs that coordinators write their records to, as partitions of internal topics."""

from __future__ import annotations

__all__: list[str] = []
