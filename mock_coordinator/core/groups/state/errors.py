"""Errors for groups that do not exist, or are of another type."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused

__all__ = ["group_id_not_found", "not_a_connect_group", "not_a_consumer_group"]


def group_id_not_found(group_id: str) -> Refused:
    """For a group that does not exist."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def not_a_consumer_group(group_id: str) -> Refused:
    """For a group of another type than the API is for."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def not_a_connect_group(group_id: str) -> Refused:
    """For a group of another type than the API is for."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a connect group.")
