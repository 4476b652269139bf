"""The servers of a broker's further listeners, and the broker's own permissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mock_coordinator.connection import AuthenticatorFactory
from mock_coordinator.core.authentication.sasl import SaslAccounts, SaslRules
from mock_coordinator.core.security.state import SecurityState
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.security.options import ListenerOptions, SecurityOptions
from mock_coordinator.tcp.server import NamedListener, WireServer

__all__ = [
    "LOCAL_PRINCIPAL",
    "extra_servers",
    "prepared_state",
    "without_authorizer_settings",
]

_AUTHORIZER: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"
_OPEN: Final = "allow.everyone.if.no.acl.found"

LOCAL_PRINCIPAL: Final = "Local:mock-broker"
"""Who the methods of a ``MockBroker`` act as: a super user as which no client can log in."""


def without_authorizer_settings(
    config: Mapping[str, str] | None, options: SecurityOptions | None
) -> tuple[dict[str, str], SecurityOptions | None]:
    """The broker's settings without those of its authorizer, and the options with them.

    They are Kafka's: ``authorizer.class.name``, and StandardAuthorizer's own ``super.users``
    (separated by semicolons) and ``allow.everyone.if.no.acl.found``. The latter two say something
    only where there is an authorizer, be it because the options imply one.
    """
    rest = dict(config or {})
    users = rest.pop(_SUPER_USERS, "")
    everyone = rest.pop(_OPEN, "")
    given = options or SecurityOptions()
    if not rest.get(_AUTHORIZER) and not given.has_authorizer:
        return rest, options
    names = tuple(name.strip() for name in users.split(";") if name.strip())
    options = replace(
        given,
        authorizer=True,
        super_users=(*given.super_users, *names),
        allow_everyone_if_no_acl_found=given.allow_everyone_if_no_acl_found
        or everyone.strip().lower() == "true",
    )
    return rest, options


def prepared_state(options: SecurityOptions | None) -> SecurityState | None:
    """What a cluster starts with, its own principal among the super users."""
    if options is None:
        return None
    state = options.state()
    if state.authorizer is not None:
        state.authorizer.super_users |= {LOCAL_PRINCIPAL}
    return state


def extra_servers(driver: CoreDriver, options: SecurityOptions | None) -> tuple[WireServer, ...]:
    """A server for each listener and broker."""
    if options is None:
        return ()
    nodes = driver.core.broker.nodes.ids
    servers: list[WireServer] = []
    for listener in options.listeners:
        named = NamedListener(
            listener.name, _authenticators(driver, listener), listener.tls_context
        )
        for index, node_id in enumerate(nodes):
            port = listener.port and listener.port + index
            only = None if len(nodes) == 1 else node_id
            servers.append(WireServer(driver, listener.host, port, only, named))
    return tuple(servers)


def _authenticators(driver: CoreDriver, listener: ListenerOptions) -> AuthenticatorFactory:
    if not listener.uses_sasl:
        return AuthenticatorFactory(listener.name)
    broker = driver.core.broker
    disk = broker.disk
    limit_ms = listener.max_reauth_ms
    if limit_ms is None:
        limit_ms = broker.config.integer("connections.max.reauth.ms")
    rules = SaslRules(listener.mechanisms, max(limit_ms, 0))
    accounts = SaslAccounts(disk.security.passwords, disk.scram)
    return AuthenticatorFactory(listener.name, rules, accounts, lambda: broker.new_uuid().hex())
