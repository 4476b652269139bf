"""The source: a batch query or a stream, in Spark's driver and in its executors."""
