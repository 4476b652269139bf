"""ApiVersions (key 18): the APIs and features of this broker, and the check that the client reached
the broker that it meant (KIP-35, KIP-511, KIP-584; cluster and node check from version 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kip848_client.core.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    ApiVersionsResponseFinalizedFeatureKey,
    ApiVersionsResponseSupportedFeatureKey,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.state.broker import Broker

__all__ = ["api_versions", "api_versions_fallback"]

_SOFTWARE_SINCE: Final = 3
_IDENTITY_SINCE: Final = 5
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(call: ApiCall[ApiVersionsRequest]) -> ApiVersionsResponse:
    """Every API that is served, and the profile's features."""
    refusal = _refusal(call.broker, call.version, call.request)
    if refusal is not None:
        return ApiVersionsResponse(error_code=refusal)
    profile = call.broker.profile
    return ApiVersionsResponse(
        api_keys=_ranges(call.services.versions),
        supported_features=tuple(
            ApiVersionsResponseSupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in profile.supported_features.items()
        ),
        finalized_features_epoch=profile.finalized_features_epoch,
        finalized_features=tuple(
            ApiVersionsResponseFinalizedFeatureKey(
                name=name, min_version_level=level, max_version_level=level
            )
            for name, level in profile.finalized_features.items()
        ),
    )


def api_versions_fallback(served: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    """The answer, always in version 0, to a version that is not served: the client finds in it the
    version that it should use instead (KIP-511)."""
    key = ApiVersionsRequest.API_KEY
    own = {key: served[key]}
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_ranges(own))


def _ranges(served: Mapping[int, tuple[int, int]]) -> tuple[ApiVersionsResponseApiVersion, ...]:
    return tuple(
        ApiVersionsResponseApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in served.items()
    )


def _refusal(broker: Broker, version: int, request: ApiVersionsRequest) -> ErrorCode | None:
    if version >= _SOFTWARE_SINCE:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return ErrorCode.INVALID_REQUEST
    if version >= _IDENTITY_SINCE:
        if (request.cluster_id is None) != (request.node_id == -1):
            return ErrorCode.INVALID_REQUEST
        if request.cluster_id is not None:
            here = (broker.disk.cluster_id, broker.node_id)
            if (request.cluster_id, request.node_id) != here:
                return ErrorCode.REBOOTSTRAP_REQUIRED
    return None
