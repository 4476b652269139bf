"""``python -m kip848_client.cli.pipeline PIPELINE.toml`` runs the demo's pipeline: like ``kip848
pipeline run --json``, but it ends with its parent."""

from __future__ import annotations

import sys

from kip848_client.cli import main
from kip848_client.cli._demo._process import killed_with_parent

if __name__ == "__main__":
    killed_with_parent()
    sys.exit(main(["pipeline", "run", sys.argv[1], "--json"]))
