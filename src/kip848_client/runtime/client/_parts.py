"""Builds the parts of any client that need only its settings."""

from __future__ import annotations

import logging

from kip848_client.config import ClientConfig
from kip848_client.core.recovery import Recovery
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._tokens import with_token_provider

__all__ = ["connection_options", "recovery"]

_log = logging.getLogger("kip848_client")


def connection_options(config: ClientConfig) -> ConnectionOptions:
    """Build the connection options; warns, once per client, of a password sent in clear text."""
    if config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism == "PLAIN":
        _log.warning(
            "user name and password go to the brokers in the clear; "
            "use security_protocol SASL_SSL, or a mechanism that does not send the password",
            extra={"client_id": config.client_id},
        )
    return ConnectionOptions(
        client_id=config.client_id,
        request_timeout_ms=config.request_timeout_ms,
        connections_max_idle_ms=config.connections_max_idle_ms,
        security=with_token_provider(config.security),
    )


def recovery(config: ClientConfig) -> Recovery:
    """Build the object that decides when to restart from the bootstrap servers."""
    never = config.metadata_recovery_strategy == "none"
    return Recovery(None if never else config.metadata_recovery_rebootstrap_trigger_ms)
