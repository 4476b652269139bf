"""What ``kip848 groups`` prints, as tables and as data."""
