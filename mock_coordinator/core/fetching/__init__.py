"""Fetches: understood, waiting, answered; and their sessions."""

from __future__ import annotations

__all__: list[str] = []
