"""The parts of any client that need nothing but its settings, made from them."""

from __future__ import annotations

import logging

from kip848_client.config import ClientConfig
from kip848_client.core.recovery import Recovery
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._tokens import with_token_provider

__all__ = ["connection_options", "recovery"]

_log = logging.getLogger("kip848_client")


def connection_options(config: ClientConfig) -> ConnectionOptions:
    """How to connect; warns, once a client, of a password in the clear."""
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
    """What decides when to begin anew from the bootstrap servers."""
    never = config.metadata_recovery_strategy == "none"
    return Recovery(None if never else config.metadata_recovery_rebootstrap_trigger_ms)
