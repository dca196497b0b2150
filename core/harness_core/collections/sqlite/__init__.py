"""The embedded store: one SQLite file for the catalogue, the texts, the index and the keys."""
