"""The pure part of the command line: cells and tables as text."""
