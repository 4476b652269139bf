"""Authorization by API: what a principal must be allowed to do, and what it gets otherwise.

Every rule is a function of a requester and a request. The errors come in the order in which a
broker with StandardAuthorizer was seen to give them.
"""

from __future__ import annotations

__all__: list[str] = []
