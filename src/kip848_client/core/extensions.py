"""Whether this process may use the compiled extensions, where they were built."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["ALLOWED"]

ALLOWED: Final = not os.environ.get("KIP848_NO_EXTENSIONS")
"""``KIP848_NO_EXTENSIONS=1`` forgoes them. What they compute is the same, only faster."""
