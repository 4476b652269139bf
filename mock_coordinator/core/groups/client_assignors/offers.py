"""The assignors that a heartbeat offers: decoded, checked, and compared with the previous offer.

A list that is not null replaces the stored one; an empty list withdraws the offer. A member either
offers assignors or selects one of the broker's (KIP-848, ConsumerGroupHeartbeat: request
validation).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.assignor_values import (
    CLASSIC_VERSION,
    ClientAssignor,
)
from mock_coordinator.core.refused import Refused

__all__ = [
    "offered",
    "require_overlap",
    "validate_assignors",
    "validate_offer",
    "wants_new_target",
]


def validate_offer(request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise ``Refused`` INVALID_REQUEST for an offer that makes no sense."""
    offer = request.client_assignors
    if not offer:
        return
    if request.server_assignor is not None:
        raise _invalid("ServerAssignor and ClientAssignors cannot be used together.")
    validate_assignors(offered(request) or (), lowest=CLASSIC_VERSION)
    if request.member_epoch == 0 and request.rebalance_timeout_ms <= 0:
        # the member that computes has this long for it
        raise _invalid("RebalanceTimeoutMs must be larger than zero with ClientAssignors.")


def validate_assignors(offer: Iterable[ClientAssignor], *, lowest: int) -> None:
    """Raise ``Refused`` INVALID_REQUEST for assignors without or with the same names, and for
    versions that cannot be, below ``lowest`` among others."""
    names: set[str] = set()
    for assignor in offer:
        _validate(assignor, lowest)
        if assignor.name in names:
            raise _invalid(f"ClientAssignors has {assignor.name} twice.")
        names.add(assignor.name)


def _validate(assignor: ClientAssignor, lowest: int) -> None:
    if not assignor.name.strip():
        raise _invalid("ClientAssignors must have names.")
    low, high = assignor.minimum_version, assignor.maximum_version
    if low < lowest:
        raise _invalid(f"MinimumVersion of assignor {assignor.name} must be at least {lowest}.")
    if high < 0 or high < low:
        raise _invalid(
            f"MaximumVersion of assignor {assignor.name} must be at least 0 and its MinimumVersion."
        )
    if not low <= assignor.metadata_version <= high:
        raise _invalid(
            f"The metadata version of assignor {assignor.name} must be between its MinimumVersion "
            "and its MaximumVersion."
        )


def offered(request: ConsumerGroupHeartbeatRequest) -> tuple[ClientAssignor, ...] | None:
    """The offer of a heartbeat; ``None`` when it says nothing about it."""
    if request.client_assignors is None:
        return None
    return tuple(
        ClientAssignor(
            name=each.name,
            minimum_version=each.minimum_version,
            maximum_version=each.maximum_version,
            reason=each.reason,
            metadata_version=each.metadata_version,
            metadata=bytes(each.metadata_bytes),
        )
        for each in request.client_assignors
    )


def require_overlap(
    offer: Iterable[ClientAssignor], others: Mapping[str, Iterable[ClientAssignor]]
) -> None:
    """Raise ``Refused`` UNSUPPORTED_ASSIGNOR when no version of an assignor is understood by the
    sender and by some other member that offers it, too. ``others``: member id -> its offer."""
    mine = {each.name: each for each in offer}
    for member_id, theirs in others.items():
        for other in theirs:
            own = mine.get(other.name)
            if own is None:
                continue
            low = max(own.minimum_version, other.minimum_version)
            if low > min(own.maximum_version, other.maximum_version):
                raise Refused(
                    ErrorCode.UNSUPPORTED_ASSIGNOR,
                    f"ClientAssignor {own.name} has versions {own.minimum_version} to "
                    f"{own.maximum_version}, which do not overlap with "
                    f"{other.minimum_version} to {other.maximum_version} of member {member_id}.",
                )


def wants_new_target(old: tuple[ClientAssignor, ...], new: tuple[ClientAssignor, ...]) -> bool:
    """Whether a changed offer moves the group epoch: anything but a reason that went back to zero
    does (KIP-848, Group Epoch)."""
    if len(old) != len(new):
        return True
    return any(_differs(before, after) for before, after in zip(old, new, strict=True))


def _differs(before: ClientAssignor, after: ClientAssignor) -> bool:
    if after.reason not in (0, before.reason):
        return True
    return (
        before.name,
        before.minimum_version,
        before.maximum_version,
        before.metadata_version,
        before.metadata,
    ) != (
        after.name,
        after.minimum_version,
        after.maximum_version,
        after.metadata_version,
        after.metadata,
    )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
