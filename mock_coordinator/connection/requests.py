"""Decodes one request frame, as tolerantly as a real broker does.

Two things differ from the client's strict decoding: bytes after the end of a request are ignored,
and an ApiVersions request of an unknown version is passed on undecoded, because it has a response
(KIP-511).
"""

from __future__ import annotations

from dataclasses import replace

from kip848_client.core.wire import APIS, read_request_header
from kip848_client.core.wire._codec import decode_at
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.errors import UnsupportedVersion, WireError
from mock_coordinator.core.apis.users.acls import ACL_REQUESTS, is_unreadable
from mock_coordinator.core.inputs import ClientInfo, RequestReceived

__all__ = ["read_received"]


def read_received(connection: int, client: ClientInfo, payload: bytes) -> RequestReceived:
    """The request in a frame.

    Raises ``WireError`` (``UnsupportedVersion`` among them) when the connection has to be closed.
    """
    header, position = read_request_header(payload)
    if header.client_id != client.client_id:
        client = replace(client, client_id=header.client_id)
    key, version = header.api_key, header.api_version
    api = APIS.get(key)
    if api is None:
        raise UnsupportedVersion(f"unknown API key {key}")
    low, high = api.versions
    if api.request is ApiVersionsRequest and not low <= version <= high:
        unread = ApiVersionsRequest()
        return RequestReceived(connection, header.correlation_id, version, client, unread)
    message, end = decode_at(api.request, version, payload, position)
    if end > len(payload):
        raise WireError(f"{api.name} request v{version}: cut after {len(payload)} bytes")
    if isinstance(message, ACL_REQUESTS) and is_unreadable(message):
        raise WireError(f"{api.name} request v{version} names an unknown type")
    return RequestReceived(
        connection, header.correlation_id, version, client, message, size_bytes=len(payload)
    )
