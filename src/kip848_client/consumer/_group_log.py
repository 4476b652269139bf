"""Log lines about a group. Each has its facts as fields in addition to the text (``extra``), so
that JSON logs can be searched by them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["GroupLog"]

_log = logging.getLogger("kip848_client")
_NONE: Final[Mapping[str, object]] = MappingProxyType({})


class GroupLog:
    """``fields`` and ``member_epoch`` are added to every line."""

    def __init__(
        self, group_id: str, fields: Mapping[str, object], member_epoch: Callable[[], int]
    ) -> None:
        self._group_id = group_id
        self._fields = fields
        self._member_epoch = member_epoch

    def say(
        self,
        level: int,
        text: str,
        fields: Mapping[str, object] = _NONE,
        *,
        cause: BaseException | None = None,
    ) -> None:
        """Log a line that begins with the group."""
        self.say_only(level, f"group {self._group_id}: {text}", fields, cause=cause)

    def say_only(
        self,
        level: int,
        text: str,
        fields: Mapping[str, object] = _NONE,
        *,
        cause: BaseException | None = None,
    ) -> None:
        """Log a line as it is. ``fields`` must not be names of attributes of a ``LogRecord``."""
        extra = {**self._fields, "member_epoch": self._member_epoch(), **fields}
        _log.log(level, "%s", text, exc_info=cause, extra=extra)
