"""Security of a broker: accounts, access control lists and listeners, in Python or JSON.

As JSON::

    {
      "users": {"alice": "her password"},
      "super_users": ["User:admin"],
      "allow_everyone_if_no_acl_found": false,
      "acls": [
        {"principal": "User:alice", "operation": "READ", "resource_type": "TOPIC", "name": "orders"}
      ],
      "listeners": [
        {"name": "SASL", "protocol": "SASL_PLAINTEXT", "port": 9093, "mechanisms": ["PLAIN"]},
        {"name": "TLS", "protocol": "SSL", "certificate": "server.pem", "key": "server.key",
         "client_ca": "ca.pem", "client_auth": "required"}
      ]
    }

All users can authenticate with PLAIN and with SCRAM. The broker has an authorizer if ``acls`` or
``super_users`` are given (or ``"authorizer": true``); otherwise every request is allowed.
"""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kip848_client.core.secrets import Passwords
from kip848_client.errors import ConfigError
from mock_coordinator.core.authentication.sasl import MECHANISMS
from mock_coordinator.core.security.acls import Acl, acls_from_data
from mock_coordinator.core.security.authorizer import AclTable, Authorizer
from mock_coordinator.core.security.scram_store import SCRAM_MECHANISMS, ScramCredential, ScramStore
from mock_coordinator.core.security.state import SecurityState

__all__ = ["PROTOCOLS", "ListenerOptions", "SecurityOptions"]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_ITERATIONS: Final = 4096
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerOptions:
    """A further address that a broker listens on.

    Args:
        name: The listener's name.
        protocol: One of ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT``, ``SASL_SSL``.
        host: The address to bind.
        port: The port; 0 picks a free one. With several brokers a given port counts up.
        mechanisms: The SASL mechanisms. Default: all.
        certificate: PEM file, with the chain; needed for TLS without ``ssl_context``.
        key: PEM file of the certificate's key.
        client_ca: PEM file with the authorities of clients' certificates.
        client_auth: ``none``, ``requested`` or ``required``: whether clients have certificates,
            whose subjects are then their principals.
        ssl_context: A ready context in place of the files.
        max_reauth_ms: How long a SASL session lasts in milliseconds; 0 without a limit. Default:
            the setting ``connections.max.reauth.ms``.

    Raises:
        ConfigError: For an invalid value or combination.
    """

    name: str
    protocol: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    mechanisms: tuple[str, ...] = MECHANISMS
    certificate: str | None = None
    key: str | None = None
    client_ca: str | None = None
    client_auth: str = "none"
    ssl_context: ssl.SSLContext | None = None
    max_reauth_ms: int | None = None

    def __post_init__(self) -> None:
        """Raise ``ConfigError`` for an invalid listener."""
        _check_texts(self.name, (self.name, self.host))
        _check_port(self.name, self.port)
        if self.protocol not in PROTOCOLS:
            raise ConfigError(
                f"listener {self.name}: expected a protocol of "
                f"{', '.join(PROTOCOLS)}, not {self.protocol!r}"
            )
        unknown = [each for each in self.mechanisms if each not in MECHANISMS]
        if unknown or not self.mechanisms:
            raise ConfigError(
                f"listener {self.name}: expected mechanisms of {', '.join(MECHANISMS)}, not "
                f"{', '.join(unknown) or 'none at all'}"
            )
        if self.client_auth not in _CLIENT_AUTH:
            raise ConfigError(
                f"listener {self.name}: expected client_auth of {', '.join(_CLIENT_AUTH)}, not "
                f"{self.client_auth!r}"
            )
        if self.uses_tls and self.ssl_context is None and not (self.certificate and self.key):
            raise ConfigError(f"listener {self.name}: {self.protocol} needs a certificate and key")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def tls_context(self) -> ssl.SSLContext | None:
        """The context of a TLS listener, otherwise ``None``. Raises ``ConfigError`` for files that
        cannot be read."""
        if not self.uses_tls:
            return None
        if self.ssl_context is not None:
            return self.ssl_context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(str(self.certificate), self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ssl.SSLError) as err:
            raise ConfigError(f"listener {self.name}: {err}") from err
        context.verify_mode = _CLIENT_AUTH[self.client_auth]
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityOptions:
    """Accounts, access control lists and listeners of a broker.

    Args:
        users: Passwords by user name.
        super_users: Principals that may do everything, such as ``User:admin``.
        allow_everyone_if_no_acl_found: Whether resources without any ACL are open to all.
        acls: The access control lists.
        authorizer: Whether there is an authorizer even without ``acls`` and ``super_users``.
        listeners: Further listeners, besides the plain one.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    super_users: tuple[str, ...] = ()
    allow_everyone_if_no_acl_found: bool = False
    acls: tuple[Acl, ...] = ()
    authorizer: bool = False
    listeners: tuple[ListenerOptions, ...] = ()

    def __post_init__(self) -> None:
        """Keep passwords out of ``repr``."""
        object.__setattr__(self, "users", Passwords(self.users))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SecurityOptions:
        """Read options from plain data (the JSON form). Raises ``ConfigError`` for invalid data."""
        known = [each.name for each in fields(cls)]
        _require_known(data, known, "security")
        users, listeners = data.get("users", {}), data.get("listeners", ())
        if not isinstance(users, Mapping):
            what = type(users).__name__
            raise ConfigError(f"users: expected {{name: password}}, not a {what}")
        for name, password in users.items():
            if not isinstance(password, str):
                what = type(password).__name__
                raise ConfigError(f"the password of {name}: expected a string, not a {what}")
        if not all(isinstance(each, Mapping) for each in listeners):
            raise ConfigError("listeners: expected a list of objects (name, protocol, port, ...)")
        try:
            return cls(
                users=dict(users),
                super_users=tuple(data.get("super_users", ())),
                allow_everyone_if_no_acl_found=bool(
                    data.get("allow_everyone_if_no_acl_found", False)
                ),
                acls=acls_from_data(data.get("acls", ())),
                authorizer=bool(data.get("authorizer", False)),
                listeners=tuple(map(_listener, listeners)),
            )
        except (TypeError, AttributeError) as err:
            wrong = f"security options: {err}"
        raise ConfigError(wrong)

    @classmethod
    def from_file(cls, path: str) -> SecurityOptions:
        """Read options from a JSON file. Raises ``ConfigError``."""
        return cls.from_data(security_file(path, f"security options {path}"))

    @property
    def has_authorizer(self) -> bool:
        """Whether requests may be denied: access control lists imply an authorizer."""
        return self.authorizer or bool(self.acls or self.super_users)

    def state(self) -> SecurityState:
        """The security state that a cluster starts with."""
        authorizer = None
        if self.has_authorizer:
            authorizer = Authorizer(
                AclTable(self.acls),
                frozenset(self.super_users),
                self.allow_everyone_if_no_acl_found,
            )
        addresses: dict[str, dict[int, tuple[str, int]]] = {}
        for listener in self.listeners:
            if listener.name in addresses:
                raise ConfigError(f"duplicate listener {listener.name}")
            addresses[listener.name] = {}
        return SecurityState(authorizer, Passwords(self.users), addresses)

    def put_scram_credentials(self, store: ScramStore, new_salt: Callable[[], bytes]) -> None:
        """Store the users' SCRAM credentials. ``new_salt`` returns random bytes."""
        for user, password in self.users.items():
            for number, mechanism in SCRAM_MECHANISMS.items():
                salt = new_salt()
                salted = hashlib.pbkdf2_hmac(
                    mechanism.hash_name, password.encode(), salt, _ITERATIONS
                )
                credential = ScramCredential.from_salted_password(number, _ITERATIONS, salt, salted)
                store.put(user, credential)


def security_file(path: str, said: str) -> dict[str, Any]:
    """Read the JSON object of a file. Raises ``ConfigError`` that starts with ``said`` and does not
    contain the file's text."""
    wrong = "not a JSON object"
    try:
        data = json.loads(Path(path).read_text())
        if isinstance(data, dict):
            return data
    except (OSError, ValueError) as err:
        wrong = str(err)
    raise ConfigError(f"{said}: {wrong}")  # outside: Python's error holds the whole file


def _check_texts(what: str, texts: Iterable[object]) -> None:
    for each in texts:
        if not isinstance(each, str):
            raise ConfigError(f"{what}: expected a string, not {each!r}")


def _check_port(listener: str, port: object) -> None:
    if not isinstance(port, int) or not 0 <= port <= _PORT_MAX:
        raise ConfigError(
            f"listener {listener}: expected a port from 0 to {_PORT_MAX}, not {port!r}"
        )


def _require_known(data: Mapping[str, Any], known: list[str], what: str) -> None:
    strange = [key for key in data if key not in known]
    if strange:
        raise ConfigError(f"{what}: unknown field {strange[0]!r}, expected {', '.join(known)}")


def _listener(data: Mapping[str, Any]) -> ListenerOptions:
    known = [each.name for each in fields(ListenerOptions) if each.name != "ssl_context"]
    _require_known(data, known, "a listener")
    options = dict(data)
    if "mechanisms" in options:
        options["mechanisms"] = tuple(options["mechanisms"])
    try:
        return ListenerOptions(**options)
    except TypeError as err:
        raise ConfigError(f"a listener needs a name: {err}") from err
