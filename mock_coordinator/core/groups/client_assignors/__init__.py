"""Assignments computed by a member: the part of KIP-848 that Kafka never shipped
(docs/reference/draft-protocols.md).

Members offer assignors in their heartbeats (``offers``). When the group needs a new target and all
members offer a common assignor, the coordinator selects it and a member that can run it
(``selection``), notifies that member in a heartbeat response, gives it the group's state
(``prepare``), and installs the result (``install``). ``rounds`` tracks the progress.
"""

from __future__ import annotations

__all__: list[str] = []
