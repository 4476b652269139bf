"""The file of group events: the option ``events``."""

from __future__ import annotations

import logging
import os
from typing import Final

from kip848_client.errors import ConfigError
from kip848_client.history.core import HistoryEvent
from kip848_client.history.recording import HistoryFile, Stamp
from mock_coordinator.core.chronicle import Chronicle
from mock_coordinator.core.cluster import ClusterCore

__all__ = ["EventsFile"]

_log: Final = logging.getLogger("mock_coordinator")


class EventsFile:
    """Appends events to a file, one line of JSON per event (``kip848_client.history.core``).

    Raises ``ConfigError`` for a file that cannot be opened. If the disk fills up later, events are
    lost but the broker continues.
    """

    def __init__(self, path: str | os.PathLike[str], core: ClusterCore) -> None:
        try:
            self._file: Final = HistoryFile(path)
        except OSError as err:
            raise ConfigError(f"events = {os.fspath(path)!r}: {err.strerror or err}") from err
        self._stamp: Final = Stamp()
        self._has_told = False
        catalog = core.broker.catalog
        core.chronicled_by(
            Chronicle(
                self._put,
                lambda each: None if (topic := catalog.topic_by_id(each)) is None else topic.name,
            )
        )

    def _put(self, event: HistoryEvent) -> None:
        try:
            self._file.append(self._stamp.on(event))
        except OSError as err:
            if not self._has_told:
                self._has_told = True
                _log.warning("cannot write events of groups: %s", err)

    def close(self) -> None:
        """Write nothing more."""
        self._file.end()
