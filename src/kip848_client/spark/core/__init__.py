"""The pure part of the Spark source and sink: planning, manifests and the two-phase commit."""
