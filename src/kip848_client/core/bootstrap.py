"""Parses ``bootstrap_servers`` into addresses, for the setting and for the connections."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

__all__ = ["DEFAULT_PORT", "bootstrap_addresses"]

DEFAULT_PORT: Final = 9092
_PORT_MAX: Final = 65_535
_FORM: Final = "host[:port], with an IPv6 address in brackets"


def bootstrap_addresses(servers: object) -> tuple[tuple[str, int], ...]:
    """Parse ``bootstrap_servers``.

    Args:
        servers: One string, with commas between servers, or a sequence of strings.

    Returns:
        Host and port of each server, in order and without duplicates.

    Raises:
        ValueError: A server is not a valid address; the message names it.
    """
    binary = isinstance(servers, bytes | bytearray | memoryview)
    texts: object = servers.split(",") if isinstance(servers, str) else servers
    if binary or not isinstance(texts, Sequence):
        raise _not_text(servers)
    for text in texts:
        if not isinstance(text, str):
            raise _not_text(text)
    # As in Kafka, empty entries are ignored.
    given = [text.strip() for text in texts if text.strip()]
    if any("@" in text for text in given):  # a password may have commas, and must not be shown
        raise ValueError(
            f"expected {_FORM}, without a user or a password. For a login, set security_protocol, "
            "sasl_mechanism, sasl_plain_username and sasl_plain_password"
        )
    if not given:
        raise ValueError(f"needs at least one {_FORM}")
    return tuple(dict.fromkeys(_address(text) for text in given))


def _not_text(value: object) -> ValueError:
    return ValueError(f"a server is a str, {_FORM}; not {type(value).__name__}")


def _address(text: str) -> tuple[str, int]:
    if "://" in text:
        raise ValueError(f"{text!r} names a protocol; write {_FORM}, and set security_protocol")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or not _is_ipv6(host) or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not {_FORM}")
        return host, _port(rest[1:], text) if rest else DEFAULT_PORT
    if _is_ipv6(text):
        return text, DEFAULT_PORT
    host, colon, port = text.partition(":")
    if not host or ":" in port or any(each.isspace() or not each.isprintable() for each in host):
        raise ValueError(f"{text!r} is not {_FORM}")
    return host, _port(port, text) if colon else DEFAULT_PORT


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _port(text: str, server: str) -> int:
    # "isdecimal" alone would let other scripts' digits through
    if text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= _PORT_MAX:
        return int(text)
    raise ValueError(f"{server!r}: a port is a number from 1 to {_PORT_MAX}, not {text!r}")
