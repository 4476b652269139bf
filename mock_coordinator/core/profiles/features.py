"""The features of a release line, by its newest metadata version."""

from __future__ import annotations

from mock_coordinator.core.profile import VersionRange

__all__ = ["feature_ranges"]


def feature_ranges(metadata: int) -> dict[str, VersionRange]:
    """Supported features (KIP-584) of a release whose newest metadata version is ``metadata``."""
    return {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, metadata),
        "transaction.version": (0, 2),
        "eligible.leader.replicas.version": (0, 1),
    }
