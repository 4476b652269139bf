"""The output of ``kip848 groups``, as tables and as data."""
