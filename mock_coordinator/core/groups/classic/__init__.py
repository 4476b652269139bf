"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and who leads."""

from __future__ import annotations

__all__: list[str] = []
