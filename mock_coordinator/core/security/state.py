"""The security state of a cluster: the authorizer, accounts, addresses of its listeners."""

from __future__ import annotations

from dataclasses import dataclass, field

from mock_coordinator.core.security.authorizer import Authorizer

__all__ = ["SecurityState"]


@dataclass(slots=True)
class SecurityState:
    """Survives a crash, as everything that Kafka keeps in its cluster metadata.

    ``authorizer`` is ``None`` where everybody may do everything. ``passwords`` are the SASL/PLAIN
    accounts. ``addresses`` has for each further listener, by name, where clients reach each node:
    they get the addresses of the listener that they came through.
    """

    authorizer: Authorizer | None = None
    passwords: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, dict[int, tuple[str, int]]] = field(default_factory=dict)
