"""A request as our handlers see it: who asks, the house, and a body that was read strictly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, cast

from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from fairbank.core.errors import Malformed
from fairbank.rest.asking.reading import read_json
from fairbank.rest.house import House
from fairbank.rest.teller import Teller, Waiting
from fairbank.rest.workers import Workers
from fairbank.service.access.identity import Asker
from fairbank.service.services import Services

BODY_MAX = 4 * 1024 * 1024
_JSON = (
    b"application/json",
    b'application/json; charset="utf-8"',
    b"application/json; charset=utf-8",
    b"application/json;charset=utf-8",
)


SENT = "fairbank.method"
"""Where the scope has the method that the client sent, when it is HEAD and the request is answered as the GET that it stands for."""

DRY_RUN = "dry-run"
"""The query parameter that asks what a request would come to (`rest.foretelling`)."""

JUDGED = "fairbank.judged"
"""Where the scope of a report that was handed in on the express has its Judged."""


class Judged(NamedTuple):
    """A report that is handed in: `waiting` for what the counter says since `begun` (of perf_counter), in a place of the share of `who`."""

    waiting: Waiting
    begun: float
    who: Hashable
    body: bytes

    async def receive(self) -> dict[str, Any]:
        """The body, in the server's stead: of a client that left nothing more comes, and yet its report is carried out and counted."""
        return {"type": "http.request", "body": self.body, "more_body": False}


def is_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the body is said to be JSON."""
    return any(name == b"content-type" and value.lower() in _JSON for name, value in headers)


def _demand_plain(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises Malformed for a body that is said to be packed: nobody would unpack it."""
    for name, value in headers:
        if (plainly := _PLAINLY.get(name)) is not None and value.strip().lower() != plainly:
            field = name.decode().title()
            raise Malformed(
                f"{field}: bodies are not unpacked here",
                field=field,
                remedy="send plain JSON, not packed",
            )


_PLAINLY = {b"content-encoding": b"identity", b"transfer-encoding": b"chunked"}


class Asking(Request[Asker, None, State]):
    """The framework's request, with our words."""

    _whole: bytes | None = None

    @property
    def house(self) -> House:
        """What the application was made with."""
        return cast("House", self.app.state["house"])

    @property
    def services(self) -> Services:
        """The use cases behind the routes; for a dry run those that only tell what would be."""
        services = self.house.services
        return services.foretelling() if self.dry_run else services

    @property
    def teller(self) -> Teller:
        """Where wishes wait to be judged, those of many requests together."""
        return cast("Teller", self.app.state["teller"])

    @property
    def workers(self) -> Workers:
        """The threads for what blocks."""
        return cast("Workers", self.app.state.workers)

    @property
    def asker(self) -> Asker:
        """Who signed in; the guard has seen to it on every route that is not open."""
        return cast("Asker", self.scope["user"])

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be changed, only told what would be."""
        return bool(self.query_params.get(DRY_RUN) == "true")

    @property
    def sent_method(self) -> str:
        """The method on the wire, which a signature is about."""
        return str(self.scope.get(SENT, self.method))

    async def body(self) -> bytes:
        """The whole body. Raises Malformed when the client leaves in the middle of it; too large a body is answered with 413."""
        if self._whole is None:
            announced = next(
                (int(value) for name, value in self.scope["headers"] if name == b"content-length"),
                0,
            )
            self._whole = await self._read_all(announced)
        return self._whole

    async def _read_all(self, announced: int) -> bytes:
        whole, more = bytearray(), True
        while more:
            if max(announced, len(whole)) > BODY_MAX:
                raise RequestEntityTooLarge
            event: Any = await self.receive()
            if event["type"] != "http.request":
                raise Malformed(
                    "the request ended in the middle of its body", remedy="send it again, whole"
                )
            whole += event.get("body", b"")
            more = event.get("more_body", False)
        if len(whole) > BODY_MAX:
            raise RequestEntityTooLarge
        return bytes(whole)

    async def json(self) -> Any:
        """The body as what the handler's `data` is annotated with. The framework calls this; it would itself take "5" for 5."""
        _demand_plain(self.scope["headers"])
        if not is_json(self.scope["headers"]):
            raise HTTPException(status_code=415)
        field = self.route_handler.parsed_data_field
        return read_json(await self.body(), Any if field is None else field.annotation)
