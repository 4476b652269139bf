"""Committed offsets: stored, looked up, deleted, expired."""

from __future__ import annotations

__all__: list[str] = []
