"""The version of the package: here and nowhere else (``pyproject.toml`` reads it)."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
