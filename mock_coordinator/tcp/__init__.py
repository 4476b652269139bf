"""Listeners and connections: bytes in, frames to the broker, bytes out."""

from __future__ import annotations

__all__: list[str] = []
