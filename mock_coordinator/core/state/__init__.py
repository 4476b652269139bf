"""What the brokers of a cluster have and know: topics, logs, leaders, settings, users, quotas."""

from __future__ import annotations

__all__: list[str] = []
