"""Randomness: jitter and broker selection.

The functions of ``random`` are not used. They share one generator with the application: if it seeds
the generator to repeat a run, heartbeats in the background would change its numbers, and processes
that are forked from one, or that all seed it, would all retry at the same moment.
"""

from __future__ import annotations

import random
from typing import Final

__all__ = ["CHANCE"]

CHANCE: Final = random.SystemRandom()
"""Stateless, and safe in any thread."""
