"""Compiles a message class into one encode and one decode function per version.

Theory of operation
===================

For a class and a version this module writes the Python source of two functions, with everything
that the version decides (which fields exist, compact or classic lengths, tagged fields) already
decided, nested structs unrolled into loops and neighbouring fixed-size fields merged into one
``struct`` call. The source is compiled once, at first use, and kept: ``python -m
kip848_client.core.wire NAME VERSION`` prints it.

Reading is safe because of three rules. A length is refused when it is negative, or when that many
elements cannot fit into the bytes that are left, before anything is allocated. A slice may run
past the end, but then the position does too, and the read that follows fails, or the check that a
message ends exactly where its bytes end does. And whatever Python raises on the way (IndexError,
struct.error, UnicodeDecodeError) leaves as ``WireError``: ``decode`` has one ``try`` around the
whole call.

Unknown tagged fields are skipped (KIP-482 lets a peer add them at any time).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kip848_client.core.wire._emit import DecoderSource, EncoderSource
from kip848_client.core.wire._fields import Message
from kip848_client.errors import UnsupportedVersion, WireError

__all__ = ["decode", "decode_at", "encode", "encode_into", "source"]

M = TypeVar("M", bound=Message)

Encoder = Callable[[bytearray, Any], None]
Decoder = Callable[[bytes, int, int], tuple[Any, int]]

_encoders: Final[dict[tuple[type[Any], int], Encoder]] = {}
_decoders: Final[dict[tuple[type[Any], int], Decoder]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message body in one version, without header or size.

    Raises ``UnsupportedVersion`` when the class has no such version, or a field that the version
    cannot carry holds something else than its default; ``WireError`` when a value does not fit
    its wire type.
    """
    buffer = bytearray()
    encode_into(buffer, message, version)
    return bytes(buffer)


def encode_into(buffer: bytearray, message: Message, version: int) -> None:
    """As ``encode``, appending to a buffer. After an error the buffer's tail is meaningless."""
    cls = type(message)
    encoder = _encoders.get((cls, version))
    if encoder is None:
        encoder = _compile_encoder(cls, version)
    try:
        encoder(buffer, message)
    except WireError:
        raise
    except (struct.error, TypeError, AttributeError, ValueError, OverflowError) as err:
        raise WireError(f"cannot write {cls.__name__} v{version}: {err}") from err


def decode(cls: type[M], version: int, data: bytes | bytearray | memoryview) -> M:
    """Read one whole message body.

    Raises ``UnsupportedVersion`` for a version the class does not have, ``WireError`` for
    anything else that is wrong, trailing bytes included; never another exception.
    """
    raw = bytes(data)
    message, end = decode_at(cls, version, raw, 0)
    if end != len(raw):
        raise WireError(f"{cls.__name__} v{version}: {len(raw)} bytes, message ends at {end}")
    return message


def decode_at(cls: type[M], version: int, data: bytes, position: int) -> tuple[M, int]:
    """Read a message that starts at ``position``; returns it and the position after it.

    The caller must compare that position with ``len(data)``: it is beyond the end when the bytes
    were cut inside the last field.
    """
    decoder = _decoders.get((cls, version))
    if decoder is None:
        decoder = _compile_decoder(cls, version)
    try:
        return decoder(data, position, len(data))
    except WireError:
        raise
    except (IndexError, struct.error, ValueError, OverflowError) as err:
        raise WireError(f"cannot read {cls.__name__} v{version}: {err}") from err


def source(cls: type[Any], version: int) -> str:
    """The generated source of both functions, for a reader's eyes."""
    _check_version(cls, version)
    encoder = EncoderSource(cls, version, cls.FLEXIBLE)
    decoder = DecoderSource(cls, version, cls.FLEXIBLE)
    return f"{encoder.text()}\n\n{decoder.text()}\n"


def _check_version(cls: type[Any], version: int) -> None:
    low, high = cls.VERSIONS
    if not low <= version <= high:
        raise UnsupportedVersion(f"{cls.__name__} has versions {low} to {high}, not {version}")


def _compile_encoder(cls: type[Any], version: int) -> Encoder:
    _check_version(cls, version)
    generated = EncoderSource(cls, version, cls.FLEXIBLE)
    encoder: Encoder = _run(generated.text(), generated.names, f"encode_{cls.__name__}_{version}")
    _encoders[cls, version] = encoder
    return encoder


def _compile_decoder(cls: type[Any], version: int) -> Decoder:
    _check_version(cls, version)
    generated = DecoderSource(cls, version, cls.FLEXIBLE)
    decoder: Decoder = _run(generated.text(), generated.names, f"decode_{cls.__name__}_{version}")
    _decoders[cls, version] = decoder
    return decoder


def _run(text: str, names: dict[str, Any], label: str) -> Any:
    exec(compile(text, f"<{label}>", "exec"), names)
    return names["run"]
