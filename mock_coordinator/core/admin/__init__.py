"""What administrators ask for beside topics and groups: one module an API or a family of them.

``mock_coordinator.core.admin_handlers`` says which function answers which API key.
"""

from __future__ import annotations

__all__: list[str] = []
