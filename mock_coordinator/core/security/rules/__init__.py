"""Authorization by API: what a principal must be allowed to do, and what it is told otherwise.

``RULES`` has every API that a broker with an authorizer protects. The errors come in the order in
which a broker with StandardAuthorizer was seen to give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mock_coordinator.core.security.asker import Rule
from mock_coordinator.core.security.rules.administration import ADMINISTRATION_RULES
from mock_coordinator.core.security.rules.configs import CONFIG_RULES
from mock_coordinator.core.security.rules.groups import GROUP_RULES
from mock_coordinator.core.security.rules.offsets import (
    admit_offset_commit,
    admit_offset_delete,
    admit_offset_fetch,
    admit_txn_offset_commit,
)
from mock_coordinator.core.security.rules.producing import PRODUCING_RULES
from mock_coordinator.core.security.rules.topic_changes import TOPIC_CHANGE_RULES
from mock_coordinator.core.security.rules.topics import (
    admit_describe_producers,
    admit_describe_topic_partitions,
    admit_list_offsets,
    admit_metadata,
    admit_offset_for_leader_epoch,
)

__all__ = ["RULES"]

RULES: Final[Mapping[int, Rule]] = {
    2: admit_list_offsets,
    3: admit_metadata,
    8: admit_offset_commit,
    9: admit_offset_fetch,
    23: admit_offset_for_leader_epoch,
    28: admit_txn_offset_commit,
    47: admit_offset_delete,
    61: admit_describe_producers,
    75: admit_describe_topic_partitions,
    **GROUP_RULES,
    **PRODUCING_RULES,
    **TOPIC_CHANGE_RULES,
    **CONFIG_RULES,
    **ADMINISTRATION_RULES,
}
"""By API key."""
