"""Running the service under uvicorn: its own errors in our form, and a stop that loses nothing."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.ids import new_request_id
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.envelope import error_response

GRACE_SECONDS: Final = 95  # an answer to an image may still take its whole time
START_SECONDS: Final = 10.0
HEAD_SECONDS: Final = 30.0
HEADER_BYTES: Final = 256 * 1024  # so that a token or an id that is far too long is answered as one


class Protocol(H11Protocol):
    """HTTP whose malformed requests are answered in the form of all other errors.

    A connection whose request does not begin within ``HEAD_SECONDS`` is closed.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above has it
        """Wait for a request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read on; the clock runs while a request has begun and its head is not whole."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._be_patient()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._be_patient()

    def _be_patient(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        """Say that the request is no HTTP, and close."""
        request_id = new_request_id()
        response = error_response(InvalidRequestError("the request is no valid HTTP"), request_id)
        headers = [
            *response.raw_headers,
            (b"x-engine-request-id", request_id.encode()),
            (b"x-request-id", request_id.encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=response.status_code, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Server(uvicorn.Server):
    """A server that ends the streams of events when it is told to stop; answers are finished."""

    def __init__(
        self, app: ServiceApp, *, host: str, port: int, ready: Callable[[str], None]
    ) -> None:
        self._app, self._ready = app, ready
        super().__init__(
            uvicorn.Config(
                app, host=host, port=port, http=Protocol, ws="none", lifespan="on",
                log_config=None, access_log=False, server_header=False, date_header=True,
                timeout_graceful_shutdown=GRACE_SECONDS, proxy_headers=False,
                h11_max_incomplete_event_size=HEADER_BYTES,
            )
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Where it listens; to be asked once it does."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop, which the process then ends well by; a second Ctrl-C waits no more."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.stop()

    async def startup(self, sockets: Any = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.started:
            self._ready(self.url)

    def stop(self) -> None:
        """Stop as a signal would."""
        self._app.stop()
        self.should_exit = True


@contextmanager
def running(app: ServiceApp, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The service in a thread, on a free port unless one is given; gives its address.

    Raises:
        queue.Empty: it did not start.
    """
    addresses: SimpleQueue[str] = SimpleQueue()
    server = Server(app, host=host, port=port, ready=addresses.put)
    thread = threading.Thread(target=server.run, name="harness-serve", daemon=True)
    thread.start()
    try:
        yield addresses.get(timeout=START_SECONDS)
    finally:
        server.stop()
        thread.join()


def serve(app: ServiceApp, *, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until a signal says stop; ``ready`` is told the address once it listens."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    Server(app, host=host, port=port, ready=ready).run()
