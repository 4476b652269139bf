"""Shared parts of the drivers: steps, topics, pauses, recovery.

``Stepping`` runs a core, ``TopicDirectory`` requests metadata and keeps ids and names; ``Backoff``
paces retries, ``Recovery`` decides when to restart from the bootstrap servers.
"""

from __future__ import annotations

__all__: list[str] = []
