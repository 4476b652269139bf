"""Who a connection belongs to: SASL mechanisms and the names of certificates."""

from __future__ import annotations

__all__: list[str] = []
