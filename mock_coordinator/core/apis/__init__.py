"""What a broker serves: one function an API, and the table that names them all (``table``)."""

from __future__ import annotations

__all__: list[str] = []
