"""Schemas from a registry: the one that fixes the columns, and those of records by their ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from kip848_client.core.extras import installation
from kip848_client.errors import ConfigError, SchemaUnavailable

__all__ = ["Format", "Registry", "Schema", "UnknownSchema"]

Format = Literal["avro", "json", "protobuf"]
_TYPES: Final = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
_TIMEOUT_S: Final = 30
"""The client of confluent-kafka has no limit of its own."""
_NUMBERS: Final = (
    "timeout",
    "cache.capacity",
    "cache.latest.ttl.sec",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
)
_NOT_FOUND: Final = 404
_PASSING: Final = frozenset((408, 429, 500, 502, 503, 504))
_LOGIN: Final = re.compile(r"//[^/\s]*@")
"""A user and a password in an address."""


class UnknownSchema(ValueError):
    """The registry has no schema of this id, or one of another format: the record is bad."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema with those that it refers to. Protobuf is in the registry's binary form."""

    text: str
    references: tuple[tuple[str, str], ...] = ()
    """Name and text, each after those that it refers to itself."""


class Registry:
    """A client of a registry.

    Args:
        url: Its address; several separated by commas.
        options: Settings of confluent-kafka's client for registries.
        form: The format of the schemas.

    Raises:
        ConfigError: A setting is wrong, or the extra ``schema-registry`` is not installed.
    """

    def __init__(self, url: str, options: Mapping[str, str], form: Format) -> None:
        self._form: Format = form
        self._where = ", ".join(_named(each) for each in url.split(","))
        library = _library()
        settings: dict[str, Any] = {"timeout": _TIMEOUT_S, **options, "url": url}
        wrong = None
        try:
            settings |= {name: float(settings[name]) for name in _NUMBERS if name in settings}
            self._client = library.SchemaRegistryClient(settings)
        except (ValueError, TypeError, OSError) as err:
            wrong = f"decode.registry_options: {type(err).__name__}: {_LOGIN.sub('//', str(err))}"
        if wrong is not None:
            raise ConfigError(wrong)  # outside: the error may hold a password
        self._refused: type[Exception] = library.SchemaRegistryError

    def close(self) -> None:
        """Close its connections. Raises nothing."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def of_subject(self, subject: str, version: str) -> tuple[Schema, int, int]:
        """The schema that fixes the columns.

        Args:
            subject: Its subject.
            version: A number, or ``latest``.

        Returns:
            The schema, its version and its id.

        Raises:
            ConfigError: There is none, or it cannot be used.
            SchemaUnavailable: The registry gives no answer.
        """
        form = self._asked_form()
        try:
            if version == "latest":
                found: Any = self._client.get_latest_version(subject, form)
            else:
                found = self._client.get_version(subject, int(version), False, form)
            self._check_rules(subject, found.schema)
            return self._schema(found.schema), int(found.version), int(found.schema_id)
        except UnknownSchema as err:
            raise ConfigError(f"subject {subject}, version {version}: {err}") from err
        except Exception as err:
            if isinstance(err, self._refused) and _status(err) == _NOT_FOUND:
                raise ConfigError(
                    f"the schema registry {self._where} has no version {version} of subject "
                    f"{subject} (decode.subject, decode.version)"
                ) from err
            raise self._failure(err) from err

    def of_id(self, number: int) -> Schema:
        """The schema of a record.

        Args:
            number: Its id.

        Returns:
            The schema.

        Raises:
            UnknownSchema: There is none, or it has another format.
            SchemaUnavailable: The registry gives no answer.
        """
        try:
            found: Any = self._client.get_schema(number, None, self._asked_form())
            return self._schema(found)
        except UnknownSchema:
            raise
        except Exception as err:
            if isinstance(err, self._refused) and _status(err) == _NOT_FOUND:
                raise UnknownSchema(f"the schema registry has no schema {number}") from err
            raise self._failure(err) from err

    def _asked_form(self) -> str | None:
        return "serialized" if self._form == "protobuf" else None

    def _schema(self, found: Any) -> Schema:
        kind = found.schema_type or "AVRO"
        if kind != _TYPES[self._form]:
            raise UnknownSchema(f"the schema is of type {kind}, not {_TYPES[self._form]}")
        references: dict[str, str] = {}
        self._collect(found, references)
        return Schema(str(found.schema_str), tuple(references.items()))

    def _collect(self, found: Any, references: dict[str, str]) -> None:
        for each in found.references or ():
            if each.name in references:
                continue
            inner: Any = self._client.get_version(
                each.subject, each.version, True, self._asked_form()
            ).schema
            self._collect(inner, references)
            references[str(each.name)] = str(inner.schema_str)

    def _check_rules(self, subject: str, schema: Any) -> None:
        """Refuse rules that change values: encrypted fields would be decoded as they are."""
        rules = schema.rule_set
        names = ("domain_rules", "migration_rules", "encoding_rules")
        if rules is not None and any(getattr(rules, name, None) for name in names):
            raise ConfigError(
                f"subject {subject} has rules (data contracts), which a pipeline does not execute; "
                "name a version without rules (decode.version)"
            )

    def _failure(self, err: Exception) -> SchemaUnavailable:
        status = _status(err) if isinstance(err, self._refused) else None
        retriable = status is None or status in _PASSING
        way_out = "a restart may succeed" if retriable else "check decode.registry_options"
        answer = _LOGIN.sub("//", str(err)) or "no answer"
        return SchemaUnavailable(
            f"the schema registry {self._where} (decode.registry) gave no schema: "
            f"{type(err).__name__}: {answer} ({way_out})",
            retriable=retriable,
        )


def _status(err: Any) -> int | None:
    found = getattr(err, "http_status_code", None)
    return None if found is None else int(found)


def _named(url: str) -> str:
    """An address without a login."""
    found = urlsplit(url.strip())
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}"


def _library() -> Any:
    try:
        return import_module("confluent_kafka.schema_registry")
    except ImportError as err:
        raise ConfigError(
            f"the dependencies for schema registries are not installed ({err}): "
            f"{installation('schema-registry')}"
        ) from err
