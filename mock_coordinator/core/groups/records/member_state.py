"""The states of a member while its current assignment approaches its target (KIP-848)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MemberState"]


class MemberState(IntEnum):
    """The numbers are those of Kafka's records."""

    STABLE = 0
    """It holds what it should hold at its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have not given up yet."""
    UNKNOWN = 127
    """Written by a newer broker than the one that reads it."""
