"""How a profile is written down: API versions by name, features by their metadata version."""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.wire import api_named
from mock_coordinator.core.profile import VersionRange

__all__ = ["api_versions", "feature_ranges"]


def api_versions(
    by_name: Mapping[str, VersionRange], before: Mapping[int, VersionRange] | None = None
) -> dict[int, VersionRange]:
    """The versions of the line ``before`` with what changed, in the order of the keys, as brokers
    list them."""
    changed = {api_named(name).key: versions for name, versions in by_name.items()}
    return dict(sorted({**(before or {}), **changed}.items()))


def feature_ranges(metadata: int) -> dict[str, VersionRange]:
    """Supported features (KIP-584) of a release whose newest metadata version is ``metadata``."""
    return {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, metadata),
        "transaction.version": (0, 2),
        "eligible.leader.replicas.version": (0, 1),
    }
