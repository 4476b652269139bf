"""Metadata of members and targets for assignments computed by a member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CLASSIC_VERSION", "NO_METADATA", "AssignmentMetadata", "ClientAssignor"]

CLASSIC_VERSION: Final = -1
"""The version of what members of the classic protocol send and get: the UserData that their
assignor embeds, which the coordinator cannot translate (KIP-848, Client Side Assignor)."""


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """One assignor that a member offers to run.

    It reads and writes metadata of the versions ``minimum_version`` to ``maximum_version``; its own
    is ``metadata``, in ``metadata_version``. ``reason`` is not zero when the member wants a new
    target (KIP-848, Consumer Group & Member).
    """

    name: str
    minimum_version: int
    maximum_version: int
    reason: int = 0
    metadata_version: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class AssignmentMetadata:
    """What the assignor says to one member beside its partitions; ``error`` it says to all."""

    version: int = 0
    data: bytes = b""
    error: int = 0


NO_METADATA: Final = AssignmentMetadata()
