"""``python -m harness_integrations.cli``."""

from harness_integrations.cli import main

main()
