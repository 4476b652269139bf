"""The state of a cluster's brokers: topics, logs, leaders, settings, users, quotas."""

from __future__ import annotations

__all__: list[str] = []
