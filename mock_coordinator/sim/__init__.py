"""Whole groups in virtual time: both real cores, a bad network, and checkers that watch every step.

One seed is one world, with everything in it drawn from the seed: what the members do, what goes
wrong, and when. ``python -m mock_coordinator.sim --seed 7 --trace`` plays one, ``--seeds 0..199``
many. A run that breaks an invariant prints the seed, the options and its last events.
"""

from __future__ import annotations

from mock_coordinator.sim.group_world import GroupWorld, Result, simulate
from mock_coordinator.sim.probes import PROBES
from mock_coordinator.sim.swarm import Options, draw_options, with_changes
from mock_coordinator.sim.verdict import Failure
from mock_coordinator.sim.worlds import WORLDS

__all__ = [
    "PROBES",
    "WORLDS",
    "Failure",
    "GroupWorld",
    "Options",
    "Result",
    "draw_options",
    "simulate",
    "with_changes",
]
