"""The pure part of ``kip848 connect demo``: counting its items."""
