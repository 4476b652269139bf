"""Topics: which there are, how they come and go, what clients see of them."""

from __future__ import annotations

__all__: list[str] = []
