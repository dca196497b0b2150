"""What the adapters have in common; it imports no framework."""
