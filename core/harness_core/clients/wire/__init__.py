"""What an HTTP client of a language model sends and reads; nothing here does I/O."""
