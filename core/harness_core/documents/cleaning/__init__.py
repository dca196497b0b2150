"""Cleaners: named rules over block texts, in a fixed order, with a log of what they removed."""
