"""What is left to chance: pauses, and which broker is asked first.

Not by the functions of ``random``. They share one generator with the application: one that seeds it
to repeat a run would get other numbers with every heartbeat in the background, and processes that
are forked from one, or that all seed it, would all retry at the same moment.
"""

from __future__ import annotations

import random
from typing import Final

__all__ = ["CHANCE"]

CHANCE: Final = random.SystemRandom()
"""Has no state, and may be used in any thread."""
