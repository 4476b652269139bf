"""Gets and checks the metadata of a worker's assignors."""

from __future__ import annotations

import asyncio

from kip848_client.connect.core._model import AssignorVersions
from kip848_client.core.connect import DATA_MAX, ConnectAssignor
from kip848_client.core.short import error_text
from kip848_client.errors import ConfigError
from kip848_client.runtime._assignor_runs import checked_metadata

__all__ = ["offered_versions"]


def offered_versions(assignor: ConnectAssignor) -> AssignorVersions:
    """The offer of ``assignor`` for the group. Its name and versions must have been checked. Raises
    ``ConfigError``."""
    name, low, high = assignor.name, assignor.minimum_version, assignor.maximum_version
    try:
        said = checked_metadata(assignor.metadata(), low, high)
    except (Exception, asyncio.CancelledError) as err:
        raise ConfigError(f"metadata() of assignor {name} raised {error_text(err)}") from err
    if said.data and said.version == 0:
        raise ConfigError(f"assignor {name}: metadata of version 0 cannot have data")
    if len(said.data) > DATA_MAX:
        raise ConfigError(
            f"assignor {name} has {len(said.data)} bytes of metadata, the limit is {DATA_MAX} "
            "(coordinators store it in a record)"
        )
    return AssignorVersions(name, low, high, said)
