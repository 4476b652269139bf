"""Who may do what: access control lists, the authorizer, authentication (pure)."""
