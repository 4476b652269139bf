"""Topics: made, grown, deleted, described."""

from __future__ import annotations

__all__: list[str] = []
