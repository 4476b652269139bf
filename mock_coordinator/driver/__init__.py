"""Drives the broker's core for all kinds of connections: clock, outputs, limits."""

from __future__ import annotations

__all__: list[str] = []
