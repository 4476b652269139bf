"""What group and transaction coordinators answer."""

from __future__ import annotations

__all__: list[str] = []
