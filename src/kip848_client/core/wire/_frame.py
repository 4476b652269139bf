"""Frames: the size prefix, the request and response headers, and cutting a byte stream into frames.

A frame is four bytes of size and that many bytes. The limit on the size prevents a hostile or
faulty peer from making us wait for, or allocate, two gigabytes: it is checked as soon as the four
bytes have arrived.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.wire._codec import decode_at, encode_into
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire._primitives import read_varint
from kip848_client.core.wire.registry import APIS, Api, request_api
from kip848_client.errors import UnsupportedVersion, WireError

__all__ = [
    "MAX_FRAME_BYTES",
    "Framer",
    "RequestHeader",
    "read_request",
    "read_request_header",
    "read_response",
    "write_request",
    "write_response",
]

MAX_FRAME_BYTES: Final = 104_857_600
"""Kafka's ``socket.request.max.bytes``, 100 MiB."""

_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
_CORRELATION: Final = struct.Struct(">i")


@dataclass(slots=True)  # not frozen: that takes three times as long, and each request makes one
class RequestHeader:
    """The header of every request. ``client_id`` is ``None`` when the client sent null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


class Framer:
    """Cuts a stream of bytes into frame payloads; the stream may be split anywhere.

    Call ``feed`` with whatever arrived; it returns the payloads that are complete. Or ``put`` it in
    and ``take`` one payload at a time, where ``max_bytes`` depends on those before. Raises
    ``WireError`` for a negative size or one above ``max_bytes``; then close the connection, because
    the position in the stream is lost.
    """

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_bytes = max_bytes
        self._buffer = bytearray()

    @property
    def buffered_bytes(self) -> int:
        """The number of buffered bytes of an incomplete frame."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Add bytes; return the payloads (without their sizes) that are now complete."""
        self.put(data)
        return list(iter(self.take, None))

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes to the buffer."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Return the next payload, or ``None`` if it is incomplete."""
        buffer = self._buffer
        if len(buffer) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(buffer)
        if size < 0 or size > self.max_bytes:
            raise WireError(
                f"a frame of {size} bytes is refused (at most {self.max_bytes} are accepted)"
            )
        end = _SIZE.size + size
        if len(buffer) < end:
            return None
        payload = bytes(buffer[_SIZE.size : end])
        del buffer[:end]
        return payload


def write_request(
    request: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode a request frame.

    Args:
        request: The request.
        version: The version of its API.
        correlation_id: The id with which the answer is matched.
        client_id: The client id; ``None`` is null.

    Returns:
        The whole frame, size included.

    Raises:
        UnsupportedVersion: As for ``encode``.
        WireError: As for ``encode``.
    """
    api = request_api(request)
    name = None if client_id is None else client_id.encode()
    if name is not None and len(name) > 0x7FFF:
        raise WireError("a client id of more than 32767 bytes")
    buffer = bytearray(4)
    try:
        buffer += _HEADER.pack(api.key, version, correlation_id, -1 if name is None else len(name))
    except struct.error as err:
        raise WireError(f"cannot write the header of {api.name} v{version}: {err}") from err
    buffer += name or b""
    if api.is_flexible(version):
        buffer.append(0)
    encode_into(buffer, request, version)
    _SIZE.pack_into(buffer, 0, len(buffer) - 4)
    return bytes(buffer)


def read_request_header(payload: bytes) -> tuple[RequestHeader, int]:
    """Decode the header of a request frame.

    The header of an unknown API key or version is read as version 1, so that a server can answer
    UNSUPPORTED_VERSION.

    Args:
        payload: The frame without its size.

    Returns:
        The header, and the position of the body.

    Raises:
        WireError: The header is invalid or incomplete.
    """
    try:
        key, version, correlation, length = _HEADER.unpack_from(payload)
        position = _HEADER.size
        client_id: str | None = None
        if length >= 0:
            raw = payload[position : position + length]
            position += length
            if position > len(payload):
                raise WireError("the request header is cut short")
            client_id = raw.decode()
        elif length != -1:
            raise WireError("the client id has a negative length")
        api = APIS.get(key)
        if api is not None and api.is_flexible(version) and version <= api.versions[1]:
            position = _skip_tags(payload, position)
    except (struct.error, UnicodeDecodeError, IndexError) as err:
        raise WireError(f"the request header cannot be read: {err}") from err
    return RequestHeader(key, version, correlation, client_id), position


def read_request(payload: bytes) -> tuple[RequestHeader, Any]:
    """Decode a request frame.

    Args:
        payload: The frame without its size.

    Returns:
        The header and the request.

    Raises:
        UnsupportedVersion: The API key or the version is unknown.
        WireError: The bytes are not a request.
    """
    header, position = read_request_header(payload)
    api = APIS.get(header.api_key)
    if api is None:
        raise UnsupportedVersion(f"API key {header.api_key} is not known")
    message, end = decode_at(api.request, header.api_version, payload, position)
    if end != len(payload):
        raise WireError(
            f"{api.name} request v{header.api_version}: frame of {len(payload)} bytes ends at {end}"
        )
    return header, message


def write_response(response: Message, api: Api, version: int, correlation_id: int) -> bytes:
    """Encode a response frame.

    Args:
        response: The response.
        api: The API of the request.
        version: The version of the request.
        correlation_id: The correlation id of the request.

    Returns:
        The whole frame, size included.

    Raises:
        UnsupportedVersion: As for ``encode``.
        WireError: As for ``encode``.
    """
    buffer = bytearray(4)
    buffer += _CORRELATION.pack(correlation_id)
    if api.response_header_version(version):
        buffer.append(0)
    encode_into(buffer, response, version)
    _SIZE.pack_into(buffer, 0, len(buffer) - 4)
    return bytes(buffer)


def read_response(payload: bytes, api: Api, version: int) -> tuple[int, Any]:
    """Decode a response frame.

    Args:
        payload: The frame without its size.
        api: The API of the request.
        version: The version of the request.

    Returns:
        The correlation id and the response.

    Raises:
        WireError: The bytes are not such a response.
    """
    try:
        (correlation,) = _CORRELATION.unpack_from(payload)
        position = 4
        if api.response_header_version(version):
            position = _skip_tags(payload, position)
    except (struct.error, IndexError) as err:
        raise WireError(f"the response header cannot be read: {err}") from err
    message, end = decode_at(api.response, version, payload, position)
    if end != len(payload):
        raise WireError(
            f"{api.name} response v{version}: frame of {len(payload)} bytes ends at {end}"
        )
    return correlation, message


def _skip_tags(payload: bytes, position: int) -> int:
    count, position = read_varint(payload, position)
    if count > len(payload) - position:
        raise WireError("a header has more tagged fields than bytes")
    for _ in range(count):
        _, position = read_varint(payload, position)
        size, position = read_varint(payload, position)
        position += size
        if position > len(payload):
            raise WireError("a tagged field of the header runs past the end")
    return position
