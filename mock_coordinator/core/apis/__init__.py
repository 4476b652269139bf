"""The APIs of a broker: one function per API, and a table of all of them (``table``)."""

from __future__ import annotations

__all__: list[str] = []
