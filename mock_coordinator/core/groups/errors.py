"""How a handler refuses: one exception with Kafka's error code and words.

Raised anywhere while a request is being decided, caught once by the handler of the API. Nothing has
been applied by then, so a refused request leaves no trace.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode

__all__ = [
    "GroupError",
    "group_id_not_found",
    "not_a_connect_group",
    "not_a_consumer_group",
]


class GroupError(Exception):
    """The coordinator refuses a request. ``message`` is what the client is shown (or ``None``)."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


def group_id_not_found(group_id: str) -> GroupError:
    """69 for a group that does not exist."""
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def not_a_consumer_group(group_id: str) -> GroupError:
    """69 for a group of another type than the API is for."""
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def not_a_connect_group(group_id: str) -> GroupError:
    """69 for a group of another type than the API is for."""
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a connect group.")
