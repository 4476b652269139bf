"""UpdateFeatures (key 57): checks a change of feature levels as a controller does (KIP-584).

What would change nothing, or is only to be validated, is answered. A real change is refused: a
profile is one Kafka release with its newest features, and does not become another while it runs.
The features of groups that are not implemented here stay at 0, and asking whether they could be
raised is refused, too.
"""

from __future__ import annotations

from typing import Final

from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.quorum import (
    UpdateFeaturesRequest,
    UpdateFeaturesRequestFeatureUpdateKey,
    UpdateFeaturesResponse,
    UpdateFeaturesResponseUpdatableFeatureResult,
)
from mock_coordinator.core.broker import Broker

__all__ = ["update_features"]

_Update = UpdateFeaturesRequestFeatureUpdateKey

_METADATA: Final = "metadata.version"
_UNIMPLEMENTED: Final = {"share.version": "share groups", "streams.version": "streams groups"}
_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3
_TYPES: Final = (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)
_RESULTS_BEFORE: Final = 2


def update_features(
    broker: Broker, version: int, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Accept or refuse all updates together."""
    code, text = ErrorCode.INVALID_UPDATE_VERSION, None
    for update in request.feature_updates:
        text = _problem(broker, version, update)
        if text is not None:
            break
    if text is None:
        code, text = ErrorCode.FEATURE_UPDATE_FAILED, _refusal(broker, request)
    if text is not None:
        whole = "The update failed for all features since the following feature had an error: "
        return UpdateFeaturesResponse(error_code=code, error_message=whole + text)
    if version >= _RESULTS_BEFORE:
        return UpdateFeaturesResponse(error_message=None)
    return UpdateFeaturesResponse(
        error_message=None,
        results=tuple(
            UpdateFeaturesResponseUpdatableFeatureResult(feature=name, error_message="NONE")
            for name in dict.fromkeys(update.feature for update in request.feature_updates)
        ),
    )


def _level(broker: Broker, name: str) -> int:
    return broker.profile.finalized_features.get(name, 0)


def _refusal(broker: Broker, request: UpdateFeaturesRequest) -> str | None:
    """Why a change that a controller would make is not made here."""
    for update in request.feature_updates:
        groups = _UNIMPLEMENTED.get(update.feature)
        if groups is not None and update.max_version_level > 0:
            return (
                f"Invalid update version {update.max_version_level} for feature {update.feature}. "
                f"This broker does not implement {groups}"
            )
    if not request.validate_only and _changes(broker, request):
        return "the features of this broker are those of its profile and cannot be changed"
    return None


def _changes(broker: Broker, request: UpdateFeaturesRequest) -> bool:
    return any(u.max_version_level != _level(broker, u.feature) for u in request.feature_updates)


def _problem(broker: Broker, version: int, update: _Update) -> str | None:
    """What is wrong with one update, in the controller's words and order."""
    name, level = update.feature, update.max_version_level
    invalid = f"Invalid update version {level} for feature {name}."
    kind = update.upgrade_type
    if version == 0:
        kind = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    if kind not in _TYPES:
        return f"{invalid} The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid} A feature version cannot be less than 0."
    unsupported = _unsupported(broker, name, level)
    if unsupported is not None:
        return f"{invalid} {unsupported}"
    current = _level(broker, name)
    if level < current and kind == _UPGRADE:
        return (
            f"{invalid} Can't downgrade the version of this feature without setting the upgrade "
            "type to either safe or unsafe downgrade."
        )
    if name == _METADATA and level < current:
        return _metadata_downgrade(broker, level, safe=kind == _SAFE_DOWNGRADE)
    if name not in broker.profile.supported_features:
        return f"{invalid} Feature {name} not found."
    return None


def _unsupported(broker: Broker, name: str, level: int) -> str | None:
    controller = f"Local controller {broker.nodes.controller_id}"
    known = broker.profile.supported_features.get(name)
    if known is None:
        return None if level == 0 else f"{controller} does not support this feature."
    low, high = known
    if low <= level <= high:
        return None
    return f"{controller} only supports versions {low}-{high}"


def _metadata_downgrade(broker: Broker, level: int, *, safe: bool) -> str:
    current = _level(broker, _METADATA)
    text = f"Invalid {_METADATA} {level}."
    if broker.profile.metadata_downgrade_names_both:
        text = f"Unsupported {_METADATA} downgrade from {current} to {level}."
    if not safe:
        return f"{text} Unsafe metadata downgrade is not supported in this version."
    why = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return f"{text} {why}"
