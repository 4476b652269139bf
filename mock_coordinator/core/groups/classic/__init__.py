"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the choice of a
leader."""

from __future__ import annotations

__all__: list[str] = []
