"""Our messages in the shape of aiokafka's requests.

aiokafka's connection calls a request's ``prepare`` with the broker's versions and asks the result
for a header, a body and the class that reads the answer. All three come from
``kip848_client.core.wire``, so one connection carries aiokafka's messages and ours.

The answer is read inside aiokafka's reader task, where an exception would cost the connection and
reach us as "connection closed". So unreadable bytes become a ``Garbled`` value, and the sender
raises.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any, Final

from kip848_client.core.types import VersionLimits
from kip848_client.core.wire import Api, negotiate, read_response, request_api, write_request
from kip848_client.errors import WireError

__all__ = ["Garbled", "PreparedRequest", "WireRequest"]

_SIZE_BYTES: Final = 4
_CORRELATION: Final = struct.Struct(">i")


class Garbled:
    """An answer that could not be decoded."""

    def __init__(self, error: WireError) -> None:
        self.error = error


class _Header:
    """The frame up to the body; here it is the whole frame."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame

    def encode(self) -> bytes:
        return self._frame


class _Answer:
    """Reads one answer: aiokafka first reads the correlation id, then the message."""

    def __init__(self, api: Api, version: int) -> None:
        self._api = api
        self._version = version
        self._payload = b""
        self.correlation_id = -1

    def read(self, stream: io.BytesIO) -> _Answer:
        self._payload = stream.read()
        if len(self._payload) >= _CORRELATION.size:
            (self.correlation_id,) = _CORRELATION.unpack_from(self._payload)
        return self

    def decode(self, _stream: io.BytesIO) -> Any:
        try:
            return read_response(self._payload, self._api, self._version)[1]
        except WireError as err:
            return Garbled(err)


class PreparedRequest:
    """A request in the version negotiated with the broker."""

    def __init__(self, request: Any, api: Api, version: int) -> None:
        self._request = request
        self._version = version
        self.RESPONSE_TYPE = _Answer(api, version)

    def build_request_header(self, correlation_id: int, client_id: str) -> _Header:
        frame = write_request(self._request, self._version, correlation_id, client_id)
        return _Header(frame[_SIZE_BYTES:])  # aiokafka writes the size itself

    def encode(self) -> bytes:
        return b""

    def parse_response_header(self, stream: io.BytesIO) -> _Answer:
        return self.RESPONSE_TYPE.read(stream)

    def __repr__(self) -> str:
        return f"<v{self._version} {self._request!r}>"


class WireRequest:
    """A message of ``kip848_client.core.wire`` that any aiokafka connection can send.

    ``prepare`` raises ``UnsupportedVersion`` if the broker and ``versions`` have nothing in common,
    ``WireError`` if the message cannot be encoded.
    """

    def __init__(self, request: Any, versions: VersionLimits) -> None:
        self._request = request
        self._limits = versions
        self.api: Final = request_api(request)

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> PreparedRequest:
        low, high = self._limits
        version = negotiate(self.api, versions.get(self.api.key), at_least=low, at_most=high)
        return PreparedRequest(self._request, self.api, version)
