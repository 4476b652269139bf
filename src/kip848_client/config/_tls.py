"""TLS from files: certificates and keys in PEM, as a context.

OpenSSL's errors name neither the file nor what is wrong with it, and it asks at the terminal for a
password that it lacks. So files are looked at before it gets them.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from kip848_client.core.secrets import shown_setting

__all__ = ["Pem", "tls_context"]

_PEM_BYTES_MAX: Final = 1 << 24
_CERTIFICATE: Final = b"CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
_ENCRYPTED: Final = (b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED")
_MISMATCHES: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


class Pem(NamedTuple):
    """Certificates or keys: a file, or what would stand in one. ``name`` is the setting's."""

    name: str
    path: str | None
    text: str | None = None

    @property
    def label(self) -> str:
        """The setting, for an error."""
        if self.path is None:
            return self.name
        return f"{self.name} = {shown_setting('file', self.path)}"

    def content(self) -> bytes:
        """Its bytes. Raises ``ValueError`` that names the setting and the file."""
        if self.path is None:
            return (self.text or "").encode()
        try:
            with Path(self.path).open("rb") as file:
                return file.read(_PEM_BYTES_MAX)
        except (OSError, ValueError) as err:
            why = err.strerror if isinstance(err, OSError) else err
            raise ValueError(f"{self.label}: {why}") from err


def tls_context(
    *,
    trusted: Pem | None,
    chain: Pem | None = None,
    key: Pem | None = None,
    password: str | None = None,
    password_name: str = "ssl_password",
    check_hostname: bool = True,
) -> ssl.SSLContext:
    """A client's context that trusts ``trusted``, or what the system does.

    ``chain`` has our certificate, and our key as well if there is no ``key``. Raises ``ValueError``
    that says which setting is wrong, why, and what to do.
    """
    context = _trusting(trusted)
    context.check_hostname = check_hostname
    if chain is None and key is not None:
        raise ValueError(f"{key.label} has a private key, and nothing says its certificate")
    if chain is not None:
        _identify(context, chain, key, password, password_name)
    return context


def _trusting(trusted: Pem | None) -> ssl.SSLContext:
    if trusted is None:
        return ssl.create_default_context()
    content = trusted.content()
    if _CERTIFICATE not in content:
        raise ValueError(f"{trusted.label} {_no_pem(content, 'certificate')}")
    try:
        return ssl.create_default_context(cafile=trusted.path, cadata=trusted.text)
    except ssl.SSLError as err:
        raise ValueError(f"{trusted.label} has a damaged certificate: {_reason(err)}") from err


def _identify(
    context: ssl.SSLContext,
    chain: Pem,
    key: Pem | None,
    password: str | None,
    password_name: str,
) -> None:
    certificates = chain.content()
    if _CERTIFICATE not in certificates:
        raise ValueError(f"{chain.label} {_no_pem(certificates, 'certificate')}")
    holder = key or chain
    secrets = certificates if key is None else key.content()
    if _KEY not in secrets:
        is_ours = key is None and chain.name == "ssl_certfile"
        where = "; name the file that has it as ssl_keyfile" if is_ours else ""
        raise ValueError(f"{holder.label} {_no_pem(secrets, 'private key')}{where}")
    encrypted = any(each in secrets for each in _ENCRYPTED)
    if encrypted and not password:
        raise ValueError(f"{holder.label}: the private key is encrypted; set {password_name}")
    both = certificates if key is None else certificates + b"\n" + secrets
    try:
        # Python reads a certificate and its key from files only; this one is ours alone.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(both)
            file.flush()
            context.load_cert_chain(file.name, password=password or "")
    except ssl.SSLError as err:
        if err.reason in _MISMATCHES:
            raise ValueError(
                f"the private key of {holder.label} is not that of the certificate of {chain.label}"
            ) from err
        if encrypted:
            why = f"{password_name} does not open the private key, or it is damaged"
            raise ValueError(f"{holder.label}: {why}") from err
        raise ValueError(
            f"{chain.label}: the certificate or the private key is damaged: {_reason(err)}"
        ) from err


def _no_pem(content: bytes, what: str) -> str:
    if b"-----BEGIN " in content:
        return f"is a PEM file without a {what}"
    return (
        f"has no {what} in PEM form (a line -----BEGIN ...); a Java keystore becomes one by "
        "keytool -importkeystore -deststoretype PKCS12, a PKCS12 file by openssl pkcs12 -nodes"
    )


def _reason(error: ssl.SSLError) -> str:
    return error.reason or str(error)
