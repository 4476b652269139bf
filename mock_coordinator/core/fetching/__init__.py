"""Fetches: planned, parked, answered; and fetch sessions."""

from __future__ import annotations

__all__: list[str] = []
