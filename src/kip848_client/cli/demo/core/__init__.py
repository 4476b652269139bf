"""The pure part of ``kip848 demo``: accounting."""
