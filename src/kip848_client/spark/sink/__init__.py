"""The sink: rows of a query into topics, exactly once if asked."""
