"""``python -m mock_coordinator``: the same as ``kip848 mock``."""

from __future__ import annotations

import sys

from kip848_client.cli import main

if __name__ == "__main__":
    sys.exit(main(["mock", *sys.argv[1:]]))
