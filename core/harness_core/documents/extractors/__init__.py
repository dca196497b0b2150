"""Extractors: a file of one format becomes blocks of text with page, section and kind."""
