"""Topics: which there are, how they come and go, what clients are told of them."""

from __future__ import annotations

__all__: list[str] = []
