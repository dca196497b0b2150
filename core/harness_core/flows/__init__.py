"""Flows decide in generators; drivers wait. See ``types`` for the vocabulary."""
