"""Frames, types and values of records with schemas of a registry; pure."""
