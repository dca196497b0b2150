"""The call path: limits, ledger, trace, cache and replay of every request."""
