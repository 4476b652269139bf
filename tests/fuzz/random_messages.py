"""Random messages from a seed: quicker than a property-testing library, and made for mutation.

``RandomMessages(rng).message(cls, version)`` gives an instance that the version can carry;
``mutated`` cuts, stretches, splices or changes bytes, with a liking for the bytes that mean
something to a decoder. ``SharpMessages`` draws from what a broker knows (topics, groups, members,
ids) and from the edges of each type instead: such messages get past the first checks.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any, Final

from kip848_client.core.wire._fields import FieldSpec, field_specs

__all__ = ["RandomMessages", "SharpMessages", "mutated"]

# Empty, null, present, tag counts, continuation of a variable-length integer, extremes.
_SHARP: Final = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_SHARP_RUNS: Final = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\xc3\x28",  # not UTF-8
)
_BITS: Final = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}


class RandomMessages:
    """A source of messages whose content is drawn from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def message(self, cls: type[Any], version: int) -> Any:
        """An instance with random values in everything that the version carries."""
        return self._struct(cls, version, flexible=version >= cls.FLEXIBLE >= 0)

    def _struct(self, cls: type[Any], version: int, *, flexible: bool) -> Any:
        values: dict[str, Any] = {}
        for name, spec, _ in field_specs(cls):
            if version in spec.versions or (flexible and version in spec.tagged):
                values[name] = self._field(spec, version, flexible=flexible)
        return cls(**values)

    def _field(self, spec: FieldSpec, version: int, *, flexible: bool) -> Any:
        if version in spec.nullable and self._rng.random() < 0.2:
            return None
        if spec.kind == "array":
            count = self._rng.randrange(4)
            return tuple(self._item(spec.element, version, flexible) for _ in range(count))
        return self._item(spec.element if spec.kind == "struct" else spec.kind, version, flexible)

    def _item(self, kind: type | str | None, version: int, flexible: bool) -> Any:
        rng = self._rng
        if isinstance(kind, type):
            return self._struct(kind, version, flexible=flexible)
        match kind:
            case "string":
                return "".join(rng.choices("ab-é漢", k=rng.randrange(8)))
            case "bytes":
                return rng.randbytes(rng.randrange(20))
            case "uuid":
                return rng.randbytes(16)
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.uniform(-1e9, 1e9)
            case _:
                number = rng.getrandbits(_BITS[str(kind)])
                return number if str(kind).startswith("u") or rng.random() < 0.5 else -number


class SharpMessages(RandomMessages):
    """Messages made of what the broker knows, and of the edges of the types.

    ``texts``, ``ids``, ``blobs`` and ``numbers`` are drawn from; ``learn`` takes what a response
    told.
    """

    def __init__(
        self, rng: random.Random, texts: list[str], ids: list[bytes], blobs: list[bytes]
    ) -> None:
        super().__init__(rng)
        self.texts: Final = texts
        self.ids: Final = ids
        self.blobs: Final = blobs
        self.numbers: Final[deque[int]] = deque(maxlen=30)
        self._own: Final = (len(texts), len(ids))

    def learn(self, message: Any) -> None:
        """Remember texts, ids and numbers of a response, and forget the oldest that were learnt."""
        for name, spec, _ in field_specs(type(message)):
            value = getattr(message, name)
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, str) and len(each) < 60:
                    _keep(self.texts, each, self._own[0])
                elif spec.kind == "uuid" and isinstance(each, bytes) and any(each):
                    _keep(self.ids, each, self._own[1])
                elif isinstance(each, int) and not isinstance(each, bool):
                    self.numbers.append(each)
                elif hasattr(type(each), "VERSIONS") or hasattr(type(each), "__dataclass_fields__"):
                    self.learn(each)

    def _item(self, kind: type | str | None, version: int, flexible: bool) -> Any:
        rng = self._rng
        if isinstance(kind, type) or kind in ("bool", "float64"):
            return super()._item(kind, version, flexible)
        if kind == "string":
            return rng.choice(self.texts)
        if kind == "uuid":
            return rng.choice(self.ids)
        if kind == "bytes":
            return rng.choice(self.blobs)
        bits = _BITS[str(kind)]
        low = 0 if str(kind).startswith("u") else -(1 << bits)
        high = (1 << bits) - 1
        edges = (-1, -2, 0, 0, 1, 1, 2, 3, 5, 100, 1000, 60_000, low, high, high - 1)
        drawn = rng.choice(self.numbers) if self.numbers and rng.random() < 0.3 else None
        return min(max(rng.choice(edges) if drawn is None else drawn, low), high)


def _keep(known: list[Any], value: Any, own: int) -> None:
    if value not in known:
        known.append(value)
        if len(known) > own + 40:
            del known[own]


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """The bytes after one to eight small accidents."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = rng.randbytes(rng.randrange(1, 6))
            case 2 if at < len(data):
                data[at] = rng.choice(_SHARP)
            case 3 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 4:
                run = rng.choice(_SHARP_RUNS)
                data[at : at + len(run)] = run
            case 5:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[min(at, other) : max(at, other)][:64]
            case _:
                del data[at : at + rng.randrange(1, 5)]
    return bytes(data)
