"""The identity of members, and the consequences of their requests."""

from __future__ import annotations

__all__: list[str] = []
