"""Groups and their members as they are between two requests, and what decisions look at."""

from __future__ import annotations

__all__: list[str] = []
