"""The pure part of the demos: accounting."""
