"""``python -m kip848_client.cli.connect --name W1 ...`` is one worker of the demo's group."""

from __future__ import annotations

import sys

from kip848_client.cli.connect._worker import main

if __name__ == "__main__":
    sys.exit(main())
