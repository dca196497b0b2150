"""The command line: ``harness ask report.pdf "What was revenue?"``."""

import sys


def main() -> None:
    """Run the command line; without the extra ``cli`` say what to install and exit 2."""
    try:
        import rich  # noqa: F401 - both are needed before anything is printed
        import typer  # noqa: F401
    except ImportError:
        sys.stderr.write("harness needs the extra 'cli': pip install 'harness-integrations[cli]'\n")
        raise SystemExit(2) from None
    from harness_integrations.cli.app import app

    app()
