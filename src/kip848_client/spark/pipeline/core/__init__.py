"""The pure part of the pipeline program."""
