"""Certificates for brokers and clients, and plain connections through TLS."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import trustme

from tests.support.security.sides import SecureSide
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["SUBJECTS", "Certificates", "connect_with_tls"]

SUBJECTS: Sequence[Mapping[str, str]] = (
    {"common_name": "carol", "organization_name": "tests", "organization_unit_name": "clients"},
    {"common_name": "a,b+c", "organization_name": 'x="y"', "organization_unit_name": "<u;v>"},
    {"common_name": " blank ", "organization_name": "#number", "organization_unit_name": "a\\b"},
    {"common_name": "Zoë Ünal", "organization_name": "Ångström", "organization_unit_name": "x"},
)
"""Of clients; what they are called as principals is the question."""


class Certificates:
    """An authority, a server's certificate and those of clients, in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.ca = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca)
        self._server = self._authority.issue_cert("localhost", "127.0.0.1")
        self.server = self._write(self._server, "server")

    def pem(self) -> dict[str, str]:
        """What a real broker is configured with."""
        return {
            "chain": self._server.cert_chain_pems[0].bytes().decode(),
            "key": _pkcs8(self._server.private_key_pem.bytes()),
            "ca": self._authority.cert_pem.bytes().decode(),
        }

    def client(self, number: int, subject: Mapping[str, str]) -> ssl.SSLContext:
        """The context of a client whose certificate has this subject."""
        certificate = self._authority.issue_cert(
            f"client-{number}.test",
            common_name=subject["common_name"],
            organization_name=subject["organization_name"],
            organization_unit_name=subject["organization_unit_name"],
        )
        context = self.anonymous()
        context.load_cert_chain(*self._write(certificate, f"client-{number}"))
        return context

    def anonymous(self) -> ssl.SSLContext:
        """The context of a client without a certificate."""
        return ssl.create_default_context(cafile=self.ca)

    def _write(self, certificate: trustme.LeafCert, name: str) -> tuple[str, str]:
        chain, key = str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key")
        certificate.private_key_pem.write_to_path(key)
        certificate.cert_chain_pems[0].write_to_path(chain)
        return chain, key


def _pkcs8(pem: bytes) -> str:
    """A private key in the only form that Kafka reads."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def connect_with_tls(
    side: SecureSide, listener: str, context: ssl.SSLContext
) -> WireConnection | None:
    """A connection through TLS; ``None`` when the handshake fails."""
    connection = side.connect(listener)
    try:
        secured = context.wrap_socket(connection._socket, server_hostname="localhost")
    except (ssl.SSLError, ConnectionLostError, OSError):
        connection.close()
        return None
    connection._socket = secured
    return connection
