"""``group.consumer.migration.policy``: the directions in which groups may change their type online.

KIP-848, "Upgrade to the New Protocol". Empty groups change independently of the policy.
"""

from __future__ import annotations

from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["allows_downgrade", "allows_upgrade", "is_disabled"]

_SETTING = "group.consumer.migration.policy"


def _policy(config: BrokerConfig) -> str:
    return (config.text(_SETTING) or "").strip().lower()


def allows_upgrade(config: BrokerConfig) -> bool:
    """Whether a consumer heartbeat may turn a classic group into a consumer group."""
    return _policy(config) in ("upgrade", "bidirectional")


def allows_downgrade(config: BrokerConfig) -> bool:
    """Whether a consumer group whose members are all classic becomes a classic group."""
    return _policy(config) in ("downgrade", "bidirectional")


def is_disabled(config: BrokerConfig) -> bool:
    """Whether the two protocols may not meet in a group at all."""
    return _policy(config) == "disabled"
