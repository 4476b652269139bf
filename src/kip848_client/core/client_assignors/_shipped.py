"""The common part of the assignors of this package, which exchange no metadata."""

from __future__ import annotations

from typing import Final

from kip848_client.core.client_assignors._model import AssignorMetadata, NewAssignment

__all__ = ["ShippedAssignor"]

_NOTHING: Final = AssignorMetadata()


class ShippedAssignor:
    """Metadata of version 0, without a byte in it."""

    minimum_version: int = 0
    maximum_version: int = 0

    def metadata(self) -> AssignorMetadata:
        """Report nothing. See ``ClientAssignor.metadata``."""
        return _NOTHING

    def on_assignment(self, assignment: NewAssignment) -> None:
        """Do nothing. See ``ClientAssignor.on_assignment``."""
