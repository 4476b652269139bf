"""Whether this process may use the compiled extensions, if they were built."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["ALLOWED"]

ALLOWED: Final = not os.environ.get("KIP848_NO_EXTENSIONS")
"""``KIP848_NO_EXTENSIONS=1`` disables them. They only make the client faster; results are the
same.
"""
