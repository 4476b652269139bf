"""Principals with rights of their own: who they are, and how a channel becomes one of them.

Channel 0 and below are the administrator's, who may do everything (User:ANONYMOUS on the PLAINTEXT
listener). Channel 1 is the first user, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.differential._channels import ChannelConnection
from tests.support.wire_connection import WireConnection

__all__ = ["PASSWORD", "SECURITY", "USERS", "connector"]

USERS: Final = ("alice", "bob", "carol")
PASSWORD: Final = "secret-of-{}"
SECURITY: Final = {
    "users": {name: PASSWORD.format(name) for name in USERS},
    "super_users": ["User:ANONYMOUS"],
    "listeners": [{"name": "SASL", "protocol": "SASL_PLAINTEXT"}],
}
"""For our broker; the real one is told the same by ``start_secure_kafka``."""


def connector(
    host: str, port: int, sasl_port: int, client_id: str
) -> Callable[[int], WireConnection]:
    """Opens channels."""

    def connect(channel: int) -> WireConnection:
        if channel <= 0:
            return ChannelConnection(host, port, client_id=client_id).taken_up()
        name = USERS[(channel - 1) % len(USERS)]
        connection = ChannelConnection(host, sasl_port, client_id=client_id)
        answer = connection.request(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == 0, answer
        token = f"\0{name}\0{PASSWORD.format(name)}".encode()
        answer = connection.request(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == 0, answer
        return connection

    return connect
