"""Kafka's settings as tables of facts. A setting that a release changed has one row per change."""
