"""Adapters: the core's readers, limits, traces and replays inside existing apps."""
