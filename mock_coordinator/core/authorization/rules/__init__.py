"""Authorization rules by API: the required permissions, and the response without them.

Every rule is a function of a requester and a request. Errors come in the order observed on a broker
with StandardAuthorizer.
"""

from __future__ import annotations

__all__: list[str] = []
