"""Compiles a message class into one encode and one decode function per version.

Theory of operation
===================

For a class and a version this module generates the Python source of two functions. Everything that
depends on the version (existing fields, compact or classic lengths, tagged fields) is resolved in
the source, nested structs are unrolled into loops, and adjacent fixed-size fields are merged into
one ``struct`` call. The source is compiled once, at first use, and cached: ``python -m
kip848_client.core.wire NAME VERSION`` prints it.

Reading is safe because of three rules. A length is refused when it is negative, or when that many
elements cannot fit into the bytes that are left, before anything is allocated. A slice may run past
the end, but then the position does too, and the read that follows fails, or the check that a
message ends exactly where its bytes end does. And any exception of Python (IndexError,
struct.error, UnicodeDecodeError) becomes a ``WireError``: ``decode`` has one ``try`` around the
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
    """Encode a message body, without header or size.

    Args:
        message: The message.
        version: The version of its API.

    Returns:
        The bytes.

    Raises:
        UnsupportedVersion: The class does not have this version, or a field that the version cannot
            carry differs from its default.
        WireError: A value does not fit its wire type.
    """
    buffer = bytearray()
    encode_into(buffer, message, version)
    return bytes(buffer)


def encode_into(buffer: bytearray, message: Message, version: int) -> None:
    """Encode a message body like ``encode``, and append it to a buffer.

    Args:
        buffer: The buffer. After an error its end is undefined.
        message: The message.
        version: The version of its API.

    Raises:
        UnsupportedVersion: As for ``encode``.
        WireError: As for ``encode``.
    """
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
    """Decode a whole message body.

    Args:
        cls: The class of the message.
        version: The version of its API.
        data: The bytes of the body.

    Returns:
        The message.

    Raises:
        UnsupportedVersion: The class does not have this version.
        WireError: The bytes are invalid, or bytes remain after the message. No other exception is
            raised.
    """
    raw = bytes(data)
    message, end = decode_at(cls, version, raw, 0)
    if end != len(raw):
        raise WireError(f"{cls.__name__} v{version}: {len(raw)} bytes, message ends at {end}")
    return message


def decode_at(cls: type[M], version: int, data: bytes, position: int) -> tuple[M, int]:
    """Decode a message that starts at ``position``.

    Args:
        cls: The class of the message.
        version: The version of its API.
        data: Bytes that contain the message.
        position: Where the message starts.

    Returns:
        The message and the position after it. The caller must compare that position with
        ``len(data)``: it is beyond the end if the bytes were truncated inside the last field.

    Raises:
        UnsupportedVersion: The class does not have this version.
        WireError: The bytes are invalid.
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
    """Return the generated source of both functions, for reading."""
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
