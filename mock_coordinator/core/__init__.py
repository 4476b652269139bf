"""A broker as a pure state machine: inputs and the time in, outputs and a deadline out."""

from __future__ import annotations

__all__: list[str] = []
