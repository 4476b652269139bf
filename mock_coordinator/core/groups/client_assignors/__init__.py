"""Assignments computed by a member: the part of KIP-848 that Kafka never shipped
(docs/reference/draft-protocols.md).

Members offer assignors in their heartbeats (``offers``). When the group needs a new target and all
members offer the same one, the coordinator picks it and a member that can run it (``selection``),
asks that member in its heartbeat answer, gives it the group as it is (``prepare``), and takes the
target back (``install``). ``rounds`` knows whose turn it is.
"""

from __future__ import annotations

__all__: list[str] = []
