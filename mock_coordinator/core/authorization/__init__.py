"""Authorization of requests: the requester, one rule per API, and the completion of responses."""

from __future__ import annotations

__all__: list[str] = []
