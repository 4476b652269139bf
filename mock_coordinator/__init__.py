"""mock_coordinator."""
