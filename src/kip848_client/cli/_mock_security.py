"""The options of ``kip848 mock`` about listeners, users and access control lists, as plain data."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

from kip848_client.errors import ConfigError

__all__ = ["configure", "security_data"]

_ACL: Final = ("principal", "operation", "resource_type", "name", "pattern_type", "permission")
_ACL_LEAST: Final = 3
_PORT: Final = re.compile("[0-9]{1,5}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group("security")
    group.add_argument(
        "--security",
        metavar="FILE",
        help="a JSON file with users, super_users, acls and listeners; the options below add to it",
    )
    group.add_argument(
        "--listener",
        action="append",
        default=[],
        metavar="NAME:PROTOCOL:PORT",
        help="a further listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; port 0 picks one",
    )
    group.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="NAME:PASSWORD",
        help="an account for SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)",
    )
    group.add_argument(
        "--acl",
        action="append",
        default=[],
        metavar="'User:alice READ TOPIC orders [PREFIXED [DENY]]'",
        help="an access control list entry; with any, requests need permission",
    )
    group.add_argument(
        "--super-user",
        action="append",
        default=[],
        metavar="User:NAME",
        help="a principal that may do everything; plain connections are User:ANONYMOUS",
    )
    for name, what in (
        ("certificate", "the certificate of TLS listeners (PEM)"),
        ("key", "its private key (PEM)"),
        ("client-ca", "who signs the certificates that clients must have (PEM)"),
    ):
        group.add_argument(f"--tls-{name}", metavar="FILE", help=what)


def security_data(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the security settings, ``None`` if none are given. Raises ``ConfigError``."""
    from mock_coordinator.security.options import security_file

    path = arguments.security
    data = {} if path is None else security_file(path, f"--security {path}")
    users = dict(_user(text) for text in arguments.user)
    if users:
        data["users"] = {**data.get("users", {}), **users}
    for each in arguments.super_user:
        if not each.startswith("User:"):
            raise ConfigError(f"--super-user {each!r}: expected User:NAME")
    listeners = [_listener(text, arguments) for text in arguments.listener]
    if not any("certificate" in each for each in listeners):
        _refuse_tls(arguments)
    for key, added in (
        ("super_users", arguments.super_user),
        ("acls", [_acl(text) for text in arguments.acl]),
        ("listeners", listeners),
    ):
        if added:
            data[key] = [*data.get(key, ()), *added]
    return data or None


def _refuse_tls(arguments: argparse.Namespace) -> None:
    """Refuse TLS options without a ``--listener`` that uses them, which would be silently
    ignored."""
    for name in ("certificate", "key", "client_ca"):
        if getattr(arguments, f"tls_{name}") is not None:
            option = f"--tls-{name.replace('_', '-')}"
            raise ConfigError(f"{option} is for a --listener with SSL or SASL_SSL: there is none")


def _user(text: str) -> tuple[str, str]:
    name, separator, password = text.partition(":")
    if not name or not separator:
        raise ConfigError("--user: expected NAME:PASSWORD")
    return name, password


def _acl(text: str) -> dict[str, str]:
    words = text.split()
    if not _ACL_LEAST <= len(words) <= len(_ACL):
        raise ConfigError(f"--acl {text!r}: expected e.g. 'User:alice READ TOPIC orders'")
    return dict(zip(_ACL, words, strict=False))


def _listener(text: str, arguments: argparse.Namespace) -> dict[str, Any]:
    name, _, rest = text.partition(":")
    protocol, _, port = rest.partition(":")
    if not name or not _PORT.fullmatch(port):
        raise ConfigError(f"--listener {text!r}: expected NAME:PROTOCOL:PORT, e.g. IN:SSL:0")
    data: dict[str, Any] = {
        "name": name,
        "protocol": protocol,
        "host": arguments.host,
        "port": int(port),
    }
    if protocol.endswith("SSL"):
        data["certificate"], data["key"] = arguments.tls_certificate, arguments.tls_key
        if arguments.tls_client_ca is not None:
            data["client_ca"], data["client_auth"] = arguments.tls_client_ca, "required"
    return data
