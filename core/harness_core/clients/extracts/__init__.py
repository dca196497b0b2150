"""How the extractive client finds sentences: words, units, matching, fields. No model, no I/O."""
