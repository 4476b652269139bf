"""Write the generated pages again: ``python -m tools.docs``."""

from __future__ import annotations

import sys

from tools.docs import FOLDER, PAGES

__all__: list[str] = []

for name, page in PAGES.items():
    path, text = FOLDER / name, page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"written: docs/reference/{name}\n")
