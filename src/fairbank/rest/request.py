"""Requests as the handlers see them: the user, the services, and a body that is read strictly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from fairbank.bank.query import Page, RunQuery
from fairbank.bank.run import RunRecord
from fairbank.core.errors import InvalidInput
from fairbank.rest.async_write_queue import AsyncWriteQueue
from fairbank.rest.context import AppContext
from fairbank.rest.json_body import read_json
from fairbank.rest.thread_pools import ThreadPools
from fairbank.service.access.identity import Identity
from fairbank.service.services import Services

BODY_MAX = 4 * 1024 * 1024
SENT_METHOD = "fairbank.method"
"""Key in the scope of the method that the client sent, if a HEAD is answered as a GET."""
DRY_RUN = "dry-run"
"""Query parameter that asks for a dry run (`rest.dry_run`)."""

_JSON = (
    b"application/json",
    b'application/json; charset="utf-8"',
    b"application/json; charset=utf-8",
    b"application/json;charset=utf-8",
)
_PLAIN_ENCODINGS = {b"content-encoding": b"identity", b"transfer-encoding": b"chunked"}


class ApiRequest(Request[Identity, None, State]):
    """litestar's request with typed access to the application's parts."""

    _whole_body: bytes | None = None

    @property
    def context(self) -> AppContext:
        """The context that the application was created with."""
        return cast("AppContext", self.app.state["context"])

    @cached_property
    def services(self) -> Services:
        """The services behind the routes. Those of a dry run change nothing."""
        services = self.context.services
        return services.dry_run() if self.dry_run else services

    @property
    def write_queue(self) -> AsyncWriteQueue:
        """The queue of requests to the ledger; it writes those of many HTTP requests together."""
        return cast("AsyncWriteQueue", self.app.state["write_queue"])

    @property
    def thread_pools(self) -> ThreadPools:
        """The threads for blocking work."""
        return cast("ThreadPools", self.app.state.thread_pools)

    @property
    def identity(self) -> Identity:
        """The authenticated user. The authenticator has set it on every route that is not open."""
        return cast("Identity", self.scope["user"])

    @cached_property
    def dry_run(self) -> bool:
        """True if the request must change nothing."""
        return bool(self.scope["query_string"]) and self.query_params.get(DRY_RUN) == "true"

    def runs_by_id(self, ids: Iterable[int | None]) -> Mapping[int | None, RunRecord]:
        """Return the runs of entries. A user who may see an entry may see its run."""
        wanted = frozenset(id_ for id_ in ids if id_ is not None)
        if not wanted:
            return {}
        runs = self.services.runs.find(RunQuery(ids=wanted), Page(len(wanted)))
        return {run.id: run for run in runs}

    async def body(self) -> bytes:
        """Return the complete body.

        Raises:
            InvalidInput: the client disconnected within it.
            RequestEntityTooLarge: it has more than `BODY_MAX` bytes.
        """
        if self._whole_body is None:
            announced = next(
                (int(value) for name, value in self.scope["headers"] if name == b"content-length"),
                0,
            )
            self._whole_body = await self._read_body(announced)
        return self._whole_body

    async def _read_body(self, announced: int) -> bytes:
        body, more = bytearray(), True
        while more:
            if max(announced, len(body)) > BODY_MAX:
                raise RequestEntityTooLarge
            event: Any = await self.receive()
            if event["type"] != "http.request":
                raise InvalidInput(
                    "the request ended within its body", remedy="send it again, complete"
                )
            body += event.get("body", b"")
            more = event.get("more_body", False)
        if len(body) > BODY_MAX:
            raise RequestEntityTooLarge
        return bytes(body)

    async def json(self) -> Any:
        """Return the body as the type of the handler's `data`.

        litestar calls this; its own method would convert "5" to 5.
        """
        headers = self.scope["headers"]
        _refuse_compression(headers)
        if not any(name == b"content-type" and value.lower() in _JSON for name, value in headers):
            raise HTTPException(status_code=415)
        field = self.route_handler.parsed_data_field
        return read_json(await self.body(), Any if field is None else field.annotation)


def _refuse_compression(headers: Iterable[tuple[bytes, bytes]]) -> None:
    for name, value in headers:
        plain = _PLAIN_ENCODINGS.get(name)
        if plain is not None and value.strip().lower() != plain:
            field = name.decode().title()
            raise InvalidInput(
                f"{field}: compressed bodies are not supported",
                field=field,
                remedy="send plain JSON, not compressed",
            )
