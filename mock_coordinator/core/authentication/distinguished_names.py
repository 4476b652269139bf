"""The principal of a TLS client: its certificate's subject, as Java formats it (RFC 2253).

The last part of the subject comes first, attribute types have the short names of RFC 2253, and
special characters are escaped. Python uses the full names, in the order of the certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["ANONYMOUS", "principal_of"]

ANONYMOUS: Final = "User:ANONYMOUS"
"""Who a client without any authentication is."""

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_OIDS: Final = {
    "emailAddress": "1.2.840.113549.1.9.1",
    "givenName": "2.5.4.42",
    "serialNumber": "2.5.4.5",
    "surname": "2.5.4.4",
    "title": "2.5.4.12",
}
_IA5: Final = ("emailAddress",)
_SPECIAL: Final = ',=+<>#;"\\'
"""More than RFC 2253 asks for, as Java has it."""

Subject = Iterable[Iterable[tuple[str, str]]]


def principal_of(subject: Subject | None) -> str:
    """``User:`` and the distinguished name; ``User:ANONYMOUS`` without a certificate.

    ``subject`` is what ``ssl.SSLSocket.getpeercert()`` has under that key: relative names, each of
    pairs of type and value.
    """
    if subject is None:
        return ANONYMOUS
    parts = ["+".join(_pair(kind, value) for kind, value in relative) for relative in subject]
    return "User:" + ",".join(reversed(parts))


def _pair(kind: str, value: str) -> str:
    if kind in _SHORT:
        return f"{_SHORT[kind]}={_escaped(value)}"
    raw = value.encode()
    tag = b"\x16" if kind in _IA5 else b"\x0c"  # as most issuers encode them: IA5 or UTF-8
    length = bytes([len(raw)]) if len(raw) < 0x80 else b"\x81" + bytes([len(raw) & 0xFF])
    return f"{_OIDS.get(kind, kind)}=#{(tag + length + raw).hex()}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{char}" if char in _SPECIAL else char for char in value)
    if text.startswith(" "):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1:
        text = text[:-1] + "\\ "
    return text
