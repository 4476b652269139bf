"""Transactions on the brokers' side: markers, and verification of producers."""

from __future__ import annotations

__all__: list[str] = []
