"""The pure part of ``kip848 connect demo``: accounting."""
