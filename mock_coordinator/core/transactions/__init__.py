"""Transactions in the brokers of a cluster: what partitions make of the coordinator's decisions."""

from __future__ import annotations

__all__: list[str] = []
