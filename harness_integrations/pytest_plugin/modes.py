"""When a test replays its recording, and when it sends and records."""

import os
from typing import Literal

Mode = Literal["none", "once", "new", "all"]

CHOICES = ("none", "once", "new", "new_episodes", "all")


def chosen(given: str | None) -> Mode:
    """The mode asked for; by default ``none`` where ``CI`` is set, else ``once``."""
    match given:
        case "none" | "once" | "new" | "all":
            return given
        case "new_episodes":
            return "new"
    on_ci = os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no")
    return "none" if on_ci else "once"


def sends(mode: Mode, *, recorded: bool) -> bool:
    """Whether a test may send requests."""
    return mode in ("new", "all") or (mode == "once" and not recorded)


def replays(mode: Mode, *, recorded: bool) -> bool:
    """Whether a test answers from what is recorded."""
    return recorded and mode != "all"
