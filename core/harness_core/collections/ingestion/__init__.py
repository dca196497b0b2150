"""Files become text: in a process of their own, within limits, or failed for a reason."""
