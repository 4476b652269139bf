"""What the source decides: pure."""
