"""The group coordinator: requests in, responses and records out."""

from __future__ import annotations

__all__: list[str] = []
