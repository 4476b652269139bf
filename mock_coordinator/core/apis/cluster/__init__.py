"""The cluster: its versions, members, coordinators, replicas."""

from __future__ import annotations

__all__: list[str] = []
