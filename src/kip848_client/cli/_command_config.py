"""``--command-config FILE``: Kafka's client properties as the settings of an ``Admin``.

Certificates and keys are PEM. Kafka's default, a Java keystore (JKS, PKCS12), cannot be read by
Python: the error says how to make a PEM of it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kip848_client.config import Pem, tls_context
from kip848_client.errors import ConfigError

__all__ = ["read_properties", "settings_from"]

_NUMBERS: Final = {
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
_TEXTS: Final = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
_LOGIN: Final = re.compile(r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\s*[=:]\s*|\s+)")


def settings_from(file: str | None) -> dict[str, Any]:
    """The settings that a file says. Raises ``ConfigError``."""
    if file is None:
        return {}
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise ConfigError(f"--command-config {file}: {err}") from err
    try:
        return _settings(read_properties(text))
    except ValueError as err:  # as a ``ConfigError`` is
        raise ConfigError(f"--command-config {file}: {err}") from err


def read_properties(text: str) -> dict[str, str]:
    """Java's properties format: ``key=value`` lines, ``#`` and ``!`` comments, a backslash at the
    end of a line that goes on."""
    found: dict[str, str] = {}
    whole = ""
    for line in text.splitlines():
        part = line.lstrip()
        if not whole and (not part or part[0] in "#!"):
            continue
        slashes = len(part) - len(part.rstrip("\\"))
        if slashes % 2:
            whole += part[:-1]
            continue
        _take(whole + part, found)
        whole = ""
    if whole:
        _take(whole, found)
    return found


def _take(line: str, found: dict[str, str]) -> None:
    parts = _SEPARATOR.split(line, maxsplit=1)
    found[_unescaped(parts[0])] = _unescaped(parts[1]) if len(parts) > 1 else ""


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})|\\(.)", _character, text)


def _character(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    return _ESCAPES.get(found[2], found[2])


def _settings(properties: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, name in _TEXTS.items():
        if key in properties:
            settings[name] = properties[key]
    for key, name in _NUMBERS.items():
        if key in properties:
            settings[name] = _number(key, properties[key])
    protocol = settings.get("security_protocol", "PLAINTEXT").upper()
    if "security_protocol" in settings:
        settings["security_protocol"] = protocol
    if protocol.startswith("SASL"):
        settings |= _credentials(properties, settings.get("sasl_mechanism", "GSSAPI"))
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    return settings


def _number(key: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise ConfigError(f"{key}={text!r} is not a number of milliseconds")
    return int(text)


def _credentials(properties: Mapping[str, str], mechanism: str) -> dict[str, Any]:
    """User and password of ``sasl.jaas.config``. (Kafka's default mechanism is GSSAPI.)"""
    if mechanism == "GSSAPI":
        return {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        raise ConfigError(
            "sasl.mechanism=OAUTHBEARER needs a token provider, which a file cannot name; use "
            "kip848_client.Admin with sasl_oauth_token_provider"
        )
    login = properties.get("sasl.jaas.config", "")
    said = {
        each[1]: re.sub(r"\\(.)", r"\1", each[2]) if each[2] is not None else each[3]
        for each in _LOGIN.finditer(login)
    }
    if "username" not in said or "password" not in said:
        raise ConfigError(
            f'{mechanism} needs sasl.jaas.config with username="..." and password="...";'
        )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": said["username"],
        "sasl_plain_password": said["password"],
    }


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    trusted = _pem(properties, "truststore", "ssl.truststore.certificates")
    chain = _pem(properties, "keystore", "ssl.keystore.certificate.chain")
    key = None
    if "ssl.keystore.key" in properties:
        key = Pem("ssl.keystore.key", None, properties["ssl.keystore.key"])
    return tls_context(
        trusted=trusted,
        chain=chain,
        key=key,
        password=properties.get("ssl.key.password"),
        password_name="ssl.key.password",
        check_hostname=properties.get("ssl.endpoint.identification.algorithm", "https") != "",
    )


def _pem(properties: Mapping[str, str], which: str, inline: str) -> Pem | None:
    """What is said in the file itself, else the file that it names."""
    if inline in properties:
        return Pem(inline, None, properties[inline])
    if _store(properties, which):
        return Pem(f"ssl.{which}.location", properties[f"ssl.{which}.location"])
    return None


def _store(properties: Mapping[str, str], which: str) -> bool:
    """Whether a file is named for it. Raises ``ConfigError`` for a keystore of Java's."""
    location = properties.get(f"ssl.{which}.location")
    if location is None:
        return False
    kind = properties.get(f"ssl.{which}.type", "JKS").upper()
    if kind != "PEM":
        raise ConfigError(
            f"ssl.{which}.location={location} is a {kind} store, which Python cannot read; make a "
            "PEM file of it (keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12 "
            f"-nodes) and set ssl.{which}.type=PEM"
        )
    return True
