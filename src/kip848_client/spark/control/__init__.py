"""A running query from its program: the control channel, listeners, and group offsets."""
