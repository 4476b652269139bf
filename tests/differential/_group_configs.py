"""Choosers of requests about a group's own settings (resource type GROUP), right and wrong."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.differential._heartbeats import Chooser
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask

__all__ = ["ALTER_OPERATIONS", "GROUP", "GROUP_CONFIGS", "alter", "alter_group"]

GROUP: Final = 32
_SET: Final = 0
_DELETE: Final = 1
ALTER_OPERATIONS: Final = (_SET, _SET, _SET, _DELETE, _DELETE, 2, 3)

# No session is so short that it could end during a sequence, and no assignment interval is one
# that could pass: it is off, or longer than any sequence.
_VALUES: Final = {
    "consumer.session.timeout.ms": ("45000", "50000", "60000", "99", "3600001", "", "4x", None),
    "consumer.heartbeat.interval.ms": ("100", "2000", "7000", "15000", "15001", "99", "-1", "x"),
    "consumer.assignment.interval.ms": ("0", "600000", "600001", "-1", "soon"),
    "consumer.session.timeout": ("50000",),
    "group.consumer.session.timeout.ms": ("50000",),
    "share.auto.offset.reset": ("earliest", "never"),
    "streams.heartbeat.interval.ms": ("6000", "1"),
    "share.session.timeout.ms": ("46000",),
}


def alter(
    name: str, value: str | None, operation: int = _SET
) -> IncrementalAlterConfigsRequestAlterableConfig:
    """One change of a setting."""
    return IncrementalAlterConfigsRequestAlterableConfig(
        name=name, config_operation=operation, value=value
    )


def alter_group(
    group_id: str,
    *changes: IncrementalAlterConfigsRequestAlterableConfig,
    validate_only: bool = False,
) -> IncrementalAlterConfigsRequest:
    """A change of one group's settings."""
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=GROUP, resource_name=group_id, configs=changes
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


def alter_settings(state: SequenceState) -> Ask:
    """Set or delete settings of a group: mostly those of consumer groups."""
    rng = state.rng
    names = rng.choices(list(_VALUES), [6, 6, 6, 1, 1, 1, 1, 1], k=rng.choice([1, 1, 1, 2]))
    changes = [
        alter(name, rng.choice(_VALUES[name]), rng.choice(ALTER_OPERATIONS))
        for name in dict.fromkeys(names)
    ]
    group_id = state.group().group_id if rng.random() < 0.95 else ""
    message = alter_group(group_id, *changes, validate_only=rng.random() < 0.1)
    return state.ask("alter-group", message)


def describe_settings(state: SequenceState) -> Ask:
    """Look at a group's settings: all of them, or some."""
    rng = state.rng
    version = state.version("DescribeConfigs")
    some = rng.sample(sorted(_VALUES), 3)
    resource = DescribeConfigsRequestDescribeConfigsResource(
        resource_type=GROUP,
        resource_name=state.group().group_id if rng.random() < 0.95 else "",
        configuration_keys=rng.choice([None, None, tuple(some), ()]),
    )
    message = DescribeConfigsRequest(resources=(resource,), include_synonyms=rng.random() < 0.5)
    return state.ask("describe-settings", message, version)


GROUP_CONFIGS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("alter-group", 1.2, alter_settings),
    ("describe-settings", 0.8, describe_settings),
)
"""(name, weight, chooser)."""
