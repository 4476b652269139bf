"""``python -m kip848_client``: the same as ``kip848``."""

from __future__ import annotations

import sys

from kip848_client.cli import main

if __name__ == "__main__":
    sys.exit(main())
