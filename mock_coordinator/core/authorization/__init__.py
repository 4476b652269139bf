"""Who may ask for what: the requester, one rule an API, and the answers made whole."""

from __future__ import annotations

__all__: list[str] = []
