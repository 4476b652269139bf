"""The nodes of a cluster, and which of them leads which partition."""

from __future__ import annotations

from mock_coordinator.core.nodes.leaders import Leaders, PartitionState
from mock_coordinator.core.nodes.registry import Node, Nodes

__all__ = ["Leaders", "Node", "Nodes", "PartitionState"]
