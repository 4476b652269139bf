"""Kafka's own message definitions, read from a published jar when a test needs them.

``kafka-clients-V.jar`` has the definition of every request, response and header of release V as
JSON with comments; ``kafka-group-coordinator-V.jar`` those of the records of
``__consumer_offsets``. They are read from the jar and never stored, so each release is its own
oracle and the repository carries no copy.
"""

from __future__ import annotations

import functools
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["FieldSpec", "MessageSpec", "Versions", "load_schemas"]

_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; ``low > high`` is the empty range."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """Read "none", "3", "1-4" or "2+"."""
        if text is None or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), 32767)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a definition; ``fields`` are those of the struct it holds, if it holds one."""

    name: str
    type: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    flexible: Versions
    tag: int | None
    default: Any
    ignorable: bool
    fields: tuple[FieldSpec, ...]

    @property
    def element(self) -> str:
        """The type without the leading ``[]`` of an array."""
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """One message: ``kind`` is request, response, header, data, coordinator-key or -value.

    A message that Kafka 4 removed has no versions and no fields.
    """

    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[FieldSpec, ...]
    unstable_latest: bool


@functools.cache
def load_schemas(jar: Path) -> Mapping[str, MessageSpec]:
    """Every message definition of one jar, by message name."""
    found: dict[str, MessageSpec] = {}
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", entry):
                spec = _message(json.loads(_without_comments(archive.read(entry).decode())))
                found[spec.name] = spec
    return found


def _without_comments(text: str) -> str:
    return _TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else "", text)


def _message(raw: Mapping[str, Any]) -> MessageSpec:
    flexible = Versions.parse(raw.get("flexibleVersions"))
    common = {struct["name"]: struct for struct in raw.get("commonStructs", [])}
    fields = tuple(_field(each, flexible, common) for each in raw.get("fields", ()))
    return MessageSpec(
        name=raw["name"],
        kind=raw["type"],
        api_key=raw.get("apiKey"),
        versions=Versions.parse(raw.get("validVersions")),
        flexible=flexible,
        fields=fields,
        unstable_latest=bool(raw.get("latestVersionUnstable", False)),
    )


def _field(raw: Mapping[str, Any], flexible: Versions, common: Mapping[str, Any]) -> FieldSpec:
    element = raw["type"].removeprefix("[]")
    inner = raw.get("fields") or (common[element]["fields"] if element in common else ())
    own_flexible = raw.get("flexibleVersions")
    return FieldSpec(
        name=raw["name"],
        type=raw["type"],
        versions=Versions.parse(raw.get("versions", "0+")),
        nullable=Versions.parse(raw.get("nullableVersions")),
        tagged=Versions.parse(raw.get("taggedVersions")),
        flexible=flexible if own_flexible is None else Versions.parse(own_flexible),
        tag=raw.get("tag"),
        default=raw.get("default"),
        ignorable=bool(raw.get("ignorable", False)),
        fields=tuple(_field(each, flexible, common) for each in inner),
    )
