"""What every test runs under: no keys, no tracing, no proxies, no network beyond loopback."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SECRETS = ("_API_KEY", "_API_TOKEN", "_ACCESS_TOKEN")
_PREFIXES = ("HARNESS_", "LANGSMITH_", "LANGCHAIN_", "OPENAI_", "AZURE_OPENAI_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def _clean_environment() -> None:
    for name in list(os.environ):
        if name.endswith(_SECRETS) or name.startswith(_PREFIXES) or name.lower() in _PROXIES:
            del os.environ[name]
    llama_index = find_spec("llama_index.core")
    if llama_index is not None and llama_index.origin is not None:
        cached = Path(llama_index.origin).parent / "_static" / "tiktoken_cache"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(cached))
    os.environ["ANONYMIZED_TELEMETRY"] = "false"


_clean_environment()

_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "ci", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("soak", max_examples=2000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Async tests run on both event loops."""
    backend: str = request.param
    return backend


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loopback and unix sockets connect."""
    import socket

    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "unix"
        if host not in ("unix", "127.0.0.1", "::1", "localhost"):
            raise OSError(f"a test tried to reach {host}")
        return connect(self, address)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _fresh_state(tmp_path: Path) -> Iterator[None]:
    """Registries and in-memory caches as a new process has them, after the test."""
    yield
    from harness_core.documents import flush_documents
    from harness_core.ranking.embedders import flush_embeddings

    flush_documents()
    flush_embeddings()
