"""Levels of the broker's loggers (KIP-412). There is one logger, ``root``; its level is kept while
the broker runs and has no effect."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final

from kip848_client.core.wire.messages.configs import IncrementalAlterConfigsRequestAlterableConfig
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused

__all__ = ["ROOT_LOGGER", "alter_loggers"]

ROOT_LOGGER: Final = "root"

_SET: Final = 0
_DELETE: Final = 1
_OPERATIONS: Final = {2: "APPEND", 3: "SUBTRACT"}
_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


def alter_loggers(
    levels: MutableMapping[str, str],
    changes: tuple[IncrementalAlterConfigsRequestAlterableConfig, ...],
    *,
    dry_run: bool,
) -> None:
    """Set levels, all of them or none. Raises ``Refused``."""
    for change in changes:
        name, operation = change.name, change.config_operation
        if operation in _OPERATIONS:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"{_OPERATIONS[operation]} operation is not allowed for the BROKER_LOGGER resource",
            )
        if operation not in (_SET, _DELETE):
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource",
            )
        if name not in levels:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == _SET and change.value not in _LEVELS:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {change.value} as it is not a supported "
                f"log level. Valid log levels are {', '.join(_LEVELS)}",
            )
        if operation == _DELETE and name == ROOT_LOGGER:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
    if not dry_run:
        for change in changes:
            levels[change.name] = change.value or ""
