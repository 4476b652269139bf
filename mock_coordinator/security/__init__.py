"""Listeners with TLS and SASL, and the security options of a broker."""

from __future__ import annotations

from mock_coordinator.core.security.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mock_coordinator.security.options import ListenerOptions, SecurityOptions

__all__ = [
    "Acl",
    "ListenerOptions",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "SecurityOptions",
]
