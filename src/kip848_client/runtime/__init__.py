"""What the drivers of the cores share: steps, topics, pauses, a new beginning.

``Stepping`` runs a core, ``TopicDirectory`` asks for metadata and keeps ids and names; ``Backoff``
paces what fails, ``Recovery`` says when to begin anew from the bootstrap servers.
"""

from __future__ import annotations

__all__: list[str] = []
