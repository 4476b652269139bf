"""What a core needs to know of the cluster: its brokers, and the leader of each partition. Pure.

``Leaders`` stores what brokers returned; ``MetadataQuestions`` decides when to ask and for what.
The fetch core and the producer core have one of each; their drivers translate with
``questions_of``, ``metadata_request``, ``leaders_learnt`` and ``learnt_together``.
"""

from __future__ import annotations

from kip848_client.core.cluster._commands import LearnLeaders
from kip848_client.core.cluster._events import (
    ClusterChanged,
    ClusterEvent,
    LeadersLearnt,
    LeadersNotLearnt,
)
from kip848_client.core.cluster._leaders import Leaders
from kip848_client.core.cluster._metadata import MetadataQuestions
from kip848_client.core.cluster._model import (
    NO_EPOCH,
    NO_NODE,
    Endpoint,
    MetadataSettings,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.cluster._wire import (
    METADATA_VERSIONS,
    leaders_learnt,
    learnt_together,
    metadata_request,
    questions_of,
)

__all__ = [
    "METADATA_VERSIONS",
    "NO_EPOCH",
    "NO_NODE",
    "ClusterChanged",
    "ClusterEvent",
    "Endpoint",
    "Leaders",
    "LeadersLearnt",
    "LeadersNotLearnt",
    "LearnLeaders",
    "MetadataQuestions",
    "MetadataSettings",
    "PartitionLeader",
    "TopicLeaders",
    "leaders_learnt",
    "learnt_together",
    "metadata_request",
    "questions_of",
]
