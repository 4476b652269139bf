"""``python -m kip848_client.cli.demo --name A ...`` is one member of the demo's group."""

from __future__ import annotations

import sys

from kip848_client.cli.demo._member import main

if __name__ == "__main__":
    sys.exit(main())
