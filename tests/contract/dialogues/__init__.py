"""Dialogues with a broker about everything administrators ask for, one family of APIs a module.

A dialogue is a list of steps. They are played on a real broker and on ours, in order, on fresh
clusters; each answer is compared field by field (``tests.contract.test_admin_answers``).
"""

from __future__ import annotations

from tests.contract.dialogues import (
    configs,
    credentials,
    quotas,
    records,
    topics,
)
from tests.contract.dialogues.step import Step

__all__ = ["DIALOGUES"]

DIALOGUES: dict[str, list[Step]] = {
    "records": records.STEPS,
    "topics": topics.STEPS,
    "configs": configs.STEPS,
    "quotas": quotas.STEPS,
    "credentials": credentials.STEPS,
}
"""By name, in the order in which they are played."""
