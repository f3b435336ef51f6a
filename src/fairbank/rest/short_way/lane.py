"""The lane: a short way to the routes that clusters use by the thousand, past most of the framework.

What the framework does for any route that there could be (matching, extractors, dependencies, wrappers around `send`) costs more
than all of our own work on a report. A route with one address that takes nothing but a body needs none of it: `opt={"lane": True}`
lets its handler be called here, with the asker, the strictly read body and the problems that it has on the long way; with a function
in place of True that is called, which may answer with Reply where the handler must make a response. A request with anything more to it
takes the long way.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from litestar import Litestar, Response
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler

from fairbank.rest.answering import Reply
from fairbank.rest.asking import Asking
from fairbank.rest.asking.misfits import missing_body
from fairbank.rest.problems import response_to
from fairbank.rest.sign_in.doorkeeper import Doorkeeper

_JSON = "application/json"
_HOST = re.compile(rb"[A-Za-z0-9._:\[\]-]+")

Handling = Callable[..., Awaitable[Any]]


class Laned(Litestar):
    """The framework's application with a lane, and the doorkeeper who stands before every route of it."""

    def __init__(
        self, routes: Sequence[ControllerRouterHandler], *, doorkeeper: Doorkeeper, **more: Any
    ) -> None:
        super().__init__(routes, **more)
        self.doorkeeper = doorkeeper
        self._lane: Mapping[tuple[str, str], tuple[HTTPRouteHandler, Handling]] = {
            (method, route.path): (
                handler,
                handler.fn if handler.opt["lane"] is True else handler.opt["lane"],
            )
            for route in self.routes
            if isinstance(route, HTTPRoute)
            for method, (handler, _) in route.route_handler_map.items()
            if handler.opt.get("lane")
        }

    @property
    def lane(self) -> frozenset[tuple[str, str]]:
        """Methods and addresses that have it."""
        return frozenset(self._lane)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = (
            self._lane.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        )
        if found is None or not plain(scope):
            await super().__call__(scope, receive, send)
            return
        handler, handling = found
        scope["app"] = scope["litestar_app"] = self
        scope["route_handler"], scope["path_template"] = handler, scope["path"]
        await _send(
            await self._response(handling, Asking(scope, receive, send)), handler.status_code, send
        )

    async def _response(self, handling: Handling, request: Asking) -> Any:
        try:
            await self.doorkeeper(request)
            if not await request.body():
                raise missing_body()
            return await handling(request=request, data=await request.json())
        except Exception as error:  # noqa: BLE001 (each kind has its answer, as on the long way)
            return response_to(request, error)


def plain(scope: Mapping[str, Any]) -> bool:
    """No query, and one Host that is a name or an address: the framework knows what to say to all others."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return not scope["query_string"] and len(hosts) == 1 and _HOST.fullmatch(hosts[0]) is not None


async def _send(came: Any, status: int, send: Any) -> None:
    """A handler's result, or the response that it made itself."""
    headers, media_type = [], _JSON
    if isinstance(came, Reply):
        came, status = came
    elif isinstance(came, Response):
        status, media_type = came.status_code or status, came.media_type or _JSON
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in came.headers.items()
        ]
        came = came.content
    body = msgspec.json.encode(came)
    headers += [
        (b"content-type", media_type.encode("latin-1")),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
