"""Exactly-once processing: consume, call a function, and produce in one transaction."""
