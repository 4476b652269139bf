"""Users: access control lists, SCRAM credentials, quotas."""

from __future__ import annotations

__all__: list[str] = []
