"""What every test runs under: no keys, no tracing, no proxies, no network beyond loopback."""

import os
from collections.abc import Iterator
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "harness_integrations.pytest_plugin", "tests.support.postgres"]

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


# Where a process keeps what is registered, configured and said; a test starts as a new process.
_STATE = (
    ("harness_core.config", "_process"),
    ("harness_core.stages", "_declared"),
    ("harness_core.reading.registry", "_registered"),
    ("harness_core.ranking.embedders", "_registry"),
    ("harness_core.models.registry", "_registered"),
    ("harness_core.models.registry", "_resolved"),
    ("harness_core.models.registry", "_warned"),
    ("harness_core.models.tokenizers", "_custom"),
    ("harness_core.segmenting.registry", "_registered"),
    ("harness_core.documents.extractors.registry", "_registered"),
    ("harness_core.documents.cleaning.registry", "_registered"),
)


@pytest.fixture(autouse=True)
def _fresh_state() -> Iterator[None]:
    """Registries, settings and in-memory caches are after the test what they were before it."""
    from harness_core import flush_caches

    kept = [getattr(import_module(module), name) for module, name in _STATE]
    before = [copy(one) for one in kept]
    yield
    for one, was in zip(kept, before, strict=True):
        one.clear()
        one.update(was)
    flush_caches()
