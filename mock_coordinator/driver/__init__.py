"""What drives a broker, whichever way its clients come: its clock, its outputs, its limits."""

from __future__ import annotations

__all__: list[str] = []
