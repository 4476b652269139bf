"""What the settings of consumers and producers have in common: brokers, time, security.

``of(...)`` is the way in: it sorts out the settings that are accepted without having a meaning
here, names near ones for a name that does not exist, and raises ``ConfigError`` that says which
setting, which value and what is accepted.
"""

from __future__ import annotations

import difflib
import importlib.util
import logging
import ssl
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Secret,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kip848_client.config._tls import Pem, tls_context
from kip848_client.core.bootstrap import bootstrap_addresses
from kip848_client.core.secrets import shown_setting
from kip848_client.core.short import short
from kip848_client.errors import ConfigError

__all__ = ["ClientConfig", "ClientSettings", "Int32", "Int64", "WireText", "checked_for_the_wire"]

_log = logging.getLogger("kip848_client")

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_STRING_BYTES_MAX: Final = 2**15 - 1
_TLS_FILES: Final = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password")

Int32 = Annotated[int, Field(le=_INT32_MAX)]
"""A number that requests carry in 32 bits: 2,147,483,647 ms are 24 days."""
Int64 = Annotated[int, Field(le=_INT64_MAX)]
"""A number that stays here; the largest is Kafka's."""


def checked_for_the_wire(text: str) -> str:
    """Kafka's strings are UTF-8 of at most 32767 bytes."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as err:
        raise ValueError(f"cannot be written as UTF-8: {err.reason}") from err
    if size > _STRING_BYTES_MAX:
        raise ValueError(f"has {size} bytes; Kafka's strings have {_STRING_BYTES_MAX} at most")
    return text


WireText = Annotated[str, AfterValidator(checked_for_the_wire)]
"""A text that requests carry."""


def _checked_secret(secret: SecretStr) -> SecretStr:
    checked_for_the_wire(secret.get_secret_value())
    return secret


WireSecret = Annotated[SecretStr, AfterValidator(_checked_secret)]
"""A text that is sent in requests, and hidden in ``repr`` and in dumps of the settings."""


class ClientSettings(TypedDict, total=False):
    """The keyword arguments of every client, for type checkers.

    ``ClientConfig`` explains each.
    """

    bootstrap_servers: str | Sequence[str]
    client_id: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    connections_max_idle_ms: int | None
    allow_auto_create_topics: bool
    security_protocol: str
    ssl_context: ssl.SSLContext | None
    ssl_cafile: str | PathLike[str] | None
    ssl_certfile: str | PathLike[str] | None
    ssl_keyfile: str | PathLike[str] | None
    ssl_password: str | None
    ssl_check_hostname: bool
    sasl_mechanism: str
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_oauth_token_provider: object | None
    strict: bool


class ClientConfig(BaseModel):
    """The settings of any client. Frozen. Times in milliseconds, sizes in bytes."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    without_meaning: ClassVar[tuple[str, Mapping[str, str]]] = ("here", {})
    """Where some accepted settings have no meaning, and these settings, each with what to use
    instead."""

    bootstrap_servers: str | tuple[str, ...] = "localhost"
    """``host[:port]``, several in a list or separated by commas; the default port is 9092."""
    client_id: WireText = "kip848-client"
    """The name of this program in the brokers' logs and quotas and in group descriptions."""

    request_timeout_ms: Int32 = Field(30_000, ge=1)
    """Timeout for a broker's answer to one request."""
    retry_backoff_ms: Int64 = Field(100, ge=1)
    """The pause before a retry; it doubles each time."""
    retry_backoff_max_ms: Int64 = Field(1_000, ge=1, validate_default=True)
    """The longest such pause; ``retry_backoff_ms`` if that is longer."""
    metadata_max_age_ms: Int64 = Field(300_000, ge=1)
    """How often metadata is refreshed without another reason."""
    metadata_recovery_strategy: Literal["none", "rebootstrap"] = "rebootstrap"
    """What to do if no known broker is usable: ``rebootstrap`` closes all connections, resolves the
    names in ``bootstrap_servers`` again and starts from there (KIP-899).
    """
    metadata_recovery_rebootstrap_trigger_ms: Int64 = Field(300_000, ge=0)
    """The time without usable metadata from any broker after which that happens (KIP-1102)."""
    connections_max_idle_ms: Int64 | None = Field(540_000, ge=1)
    """An unused connection is closed after this time; ``None``: never."""
    allow_auto_create_topics: bool = True
    """Whether a metadata request for a missing topic may create it (if the broker allows it)."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Encryption and authentication of connections."""
    ssl_context: ssl.SSLContext | None = None
    """For ``SSL`` and ``SASL_SSL``: trusted certificates and the client's certificate. Replaces the
    files.
    """
    ssl_cafile: str | None = None
    """A PEM file with trusted certificates; ``None``: those that the system trusts."""
    ssl_certfile: str | None = None
    """A PEM file with the client's certificate and its chain, for brokers that require it. Files
    are read once, when the client is created.
    """
    ssl_keyfile: str | None = None
    """A PEM file with the private key; ``None``: the key is in ``ssl_certfile``."""
    ssl_password: SecretStr | None = None
    """The password of an encrypted private key."""
    ssl_check_hostname: bool = True
    """Whether a broker's certificate must match its address."""
    sasl_mechanism: Literal["PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = (
        "PLAIN"
    )
    """The SASL mechanism."""
    sasl_plain_username: WireText | None = None
    """For ``PLAIN`` and ``SCRAM``."""
    sasl_plain_password: WireSecret | None = None
    """For ``PLAIN`` and ``SCRAM``."""
    sasl_kerberos_service_name: str = "kafka"
    """For ``GSSAPI``."""
    sasl_kerberos_domain_name: str | None = None
    """For ``GSSAPI``; ``None``: the broker's host."""
    sasl_oauth_token_provider: Secret[Any] | None = None
    """For ``OAUTHBEARER``: an object whose coroutine ``token()`` returns the token."""

    _tls: ssl.SSLContext | None = PrivateAttr(None)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Check settings.

        Some of aiokafka's and Kafka's settings have no meaning here. They are logged and ignored;
        with ``strict=True`` among the settings they are refused.

        Args:
            settings: Values by name of the field.

        Returns:
            The settings, with defaults. Frozen.

        Raises:
            ConfigError: A name is unknown or a value is wrong; the text says which is accepted.
        """
        given = dict(settings)
        strict = given.pop("strict", False)
        if not isinstance(strict, bool):
            raise ConfigError(f"strict = {short(strict)}: must be True or False")
        where, known = cls.without_meaning
        ignored = {name: given.pop(name) for name in list(given) if name in known}
        _report_ignored(
            where, {name: known[name] for name, each in ignored.items() if each is not None}, strict
        )
        for name in given:
            if name not in cls.model_fields:
                raise ConfigError(_unknown(name, [*cls.model_fields, *known, "strict"]))
        try:
            return cls(**given)
        except ValidationError as err:
            wrong = _explain(err)
        raise ConfigError(wrong)  # outside: pydantic's error holds all settings

    @property
    def security(self) -> dict[str, Any]:
        """The TLS and SASL settings of connections, with wrapped secrets.

        Without SASL, no SASL settings.
        """
        found = {"security_protocol": self.security_protocol, "ssl_context": self._tls}
        if self.security_protocol.startswith("SASL"):
            names = [name for name in type(self).model_fields if name.startswith("sasl_")]
            found |= {name: getattr(self, name) for name in names}
        return found

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _take_any_sequence(cls, value: Any) -> Any:
        bootstrap_addresses(value)
        return value if isinstance(value, str) else tuple(value)

    @field_validator("ssl_cafile", "ssl_certfile", "ssl_keyfile", mode="before")
    @classmethod
    def _take_any_path(cls, value: object) -> object:
        return fspath(value) if isinstance(value, PathLike) else value

    @field_validator("metadata_recovery_strategy", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("retry_backoff_max_ms")
    @classmethod
    def _at_least_the_first_pause(cls, value: int, info: ValidationInfo) -> int:
        first: int = info.data.get("retry_backoff_ms", value)  # absent where it is wrong
        return max(value, first)

    @model_validator(mode="after")
    def _tls_fits(self) -> Self:
        protocol = self.security_protocol
        files = [name for name in _TLS_FILES if getattr(self, name) is not None]
        given = files if self.ssl_context is None else ["ssl_context", *files]
        if protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
            if given:
                tls = "SSL" if protocol == "PLAINTEXT" else "SASL_SSL"
                raise ValueError(
                    f"{given[0]} is given, but security_protocol {protocol} connects in the clear; "
                    f"set security_protocol to {tls}, or leave {given[0]} out"
                )
            return self
        if self.ssl_context is not None:
            if files or not self.ssl_check_hostname:
                other = files[0] if files else "ssl_check_hostname"
                raise ValueError(f"an ssl_context says all; leave {other} out, or the ssl_context")
            self._tls = self.ssl_context
            return self
        self._tls = self._tls_from_files()
        return self

    def _tls_from_files(self) -> ssl.SSLContext:
        for name in ("ssl_keyfile", "ssl_password"):
            if getattr(self, name) is not None and self.ssl_certfile is None:
                raise ValueError(f"{name} is given without an ssl_certfile: our certificate")

        def pem(name: str) -> Pem | None:
            path = getattr(self, name)
            return None if path is None else Pem(name, path)

        return tls_context(
            trusted=pem("ssl_cafile"),
            chain=pem("ssl_certfile"),
            key=pem("ssl_keyfile"),
            password=None if self.ssl_password is None else self.ssl_password.get_secret_value(),
            check_hostname=self.ssl_check_hostname,
        )

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        if not self.security_protocol.startswith("SASL"):
            return self
        mechanism = self.sasl_mechanism
        if mechanism == "OAUTHBEARER":
            given = self.sasl_oauth_token_provider
            provider = None if given is None else given.get_secret_value()
            if not callable(getattr(provider, "token", None)):
                raise ValueError(
                    "OAUTHBEARER needs sasl_oauth_token_provider: an object whose coroutine "
                    "token() returns the token"
                )
        elif mechanism == "GSSAPI":
            if importlib.util.find_spec("gssapi") is None:
                raise ValueError("GSSAPI needs the package gssapi, which is not installed")
        elif not self.sasl_plain_username or self.sasl_plain_password is None:
            raise ValueError(f"{mechanism} needs sasl_plain_username and sasl_plain_password")
        return self


def _report_ignored(where: str, names: Mapping[str, str], strict: bool) -> None:
    if not names:
        return
    told = "; ".join(f"{name} ({instead})" for name, instead in sorted(names.items()))
    if strict:
        raise ConfigError(f"no meaning {where}: {told}")
    _log.warning("settings without a meaning %s are ignored: %s", where, told)


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.replace(".", "_"), known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"unknown setting {name!r}{hint}"


def _explain(error: ValidationError) -> str:
    parts: list[str] = []
    for each in error.errors(include_url=False):
        name = ".".join(str(step) for step in each["loc"][:1]) or "settings"
        said = f" = {shown_setting(name, each['input'])}" if each["loc"] else ""
        parts.append(f"{name}{said}: {each['msg'].removeprefix('Value error, ')}")
    return "; ".join(parts)
