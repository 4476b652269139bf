"""How a batch is written exactly once: pure."""
