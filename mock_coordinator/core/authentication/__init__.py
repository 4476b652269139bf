"""The principal of a connection: SASL mechanisms, and names of certificates."""

from __future__ import annotations

__all__: list[str] = []
