"""The pure part of ``kip848 demo``: counting its records."""
