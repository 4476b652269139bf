"""A broker's data in a folder: what it acknowledged survives the process (``--data-dir``)."""

from __future__ import annotations

from mock_coordinator.storage.data_file import DataDamaged, DataUnwritable
from mock_coordinator.storage.storage import FSYNC_POLICIES, Storage

__all__ = ["FSYNC_POLICIES", "DataDamaged", "DataUnwritable", "Storage"]
