"""Kafka's wire format: bytes and messages, without I/O and protocol rules.

A message is a plain dataclass with the fields of all versions
(``kip848_client.core.wire.messages``)::

    from kip848_client.core.wire import decode, encode
    from kip848_client.core.wire.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
    )

    body = encode(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3), 1)
    again = decode(ConsumerGroupHeartbeatRequest, 1, body)

Whole frames are read and written by ``read_request``, ``write_request``, ``read_response`` and
``write_response``; ``Framer`` cuts a stream into frames; ``negotiate`` picks a version. Invalid
bytes or values raise ``WireError`` or its subclass ``UnsupportedVersion``.
"""

from __future__ import annotations

from kip848_client.core.wire._codec import decode, encode
from kip848_client.core.wire._frame import (
    MAX_FRAME_BYTES,
    Framer,
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from kip848_client.core.wire.registry import (
    APIS,
    DRAFT_API_KEYS,
    Api,
    api_named,
    negotiate,
    request_api,
)
from kip848_client.errors import UnsupportedVersion, WireError

__all__ = [
    "APIS",
    "DRAFT_API_KEYS",
    "MAX_FRAME_BYTES",
    "Api",
    "Framer",
    "RequestHeader",
    "UnsupportedVersion",
    "WireError",
    "api_named",
    "decode",
    "encode",
    "negotiate",
    "read_request",
    "read_request_header",
    "read_response",
    "request_api",
    "write_request",
    "write_response",
]
