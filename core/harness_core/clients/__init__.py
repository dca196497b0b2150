"""What sends requests: a server's API, a function, a mock for tests, an extractive baseline."""
