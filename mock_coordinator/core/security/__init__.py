"""Permissions (pure): access control lists, the authorizer, SCRAM credentials."""
