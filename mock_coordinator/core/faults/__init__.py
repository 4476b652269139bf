"""Faults as data: what goes wrong, when, and how often.

A ``Fault`` combines a ``Match`` (which requests) with an action (what happens to them). Faults are
written in Python or in JSON (``faults_from_json``). ``FaultInjector`` stands between a driver and
the core, which does not know of faults.
"""

from __future__ import annotations

from mock_coordinator.core.faults import actions
from mock_coordinator.core.faults.actions import *  # noqa: F403 - they are listed once, there
from mock_coordinator.core.faults.as_json import fault_from_json, faults_from_json
from mock_coordinator.core.faults.fault import Fault
from mock_coordinator.core.faults.injector import FaultInjector
from mock_coordinator.core.faults.match import Match
from mock_coordinator.core.faults.refusal import refusal

__all__ = ["Fault", "FaultInjector", "Match", "fault_from_json", "faults_from_json", "refusal"]
__all__ += actions.__all__
