"""``python -m mock_coordinator.sim``."""

from __future__ import annotations

import sys

from mock_coordinator.sim.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
