"""``python -m kip848_client`` is the same as the command ``kip848``."""

from __future__ import annotations

import sys

from kip848_client.cli import main

if __name__ == "__main__":
    sys.exit(main())
