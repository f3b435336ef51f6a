"""Dispatch of reports of runs, without the framework's.

litestar's routing, extraction of parameters and wrapping of responses take a third of the CPU time
of a request with one report (docs/decisions/0010). Reports have no parameters: only a body. The
authenticator, the checks, the handlers and the responses to errors are those of all routes.
"""

from __future__ import annotations

import re
from typing import Any, cast

from litestar import Litestar, Response
from litestar.types import Receive, Scope, Send

from fairbank.rest.input_checks import check_address
from fairbank.rest.json_body import missing_body
from fairbank.rest.problems import response_to
from fairbank.rest.request import ApiRequest
from fairbank.rest.responses import send_json
from fairbank.rest.routes.job import report_run, report_runs

_HANDLERS = {"/job": report_run, "/job/bulk": report_runs}
_PLAIN_HOST = re.compile(rb"[0-9A-Za-z.:-]*")


class ReportDispatch:
    """ASGI application that calls the handlers of reports itself and gives litestar the rest."""

    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._authenticator = app.state.authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_plain_report(scope):
            response = await self._respond(scope, receive, send)
            await send_json(
                send,
                cast("int", response.status_code),
                response.content,
                str(response.media_type or "application/json"),
                response.headers,
            )
        else:
            await self._app(scope, receive, send)

    async def _respond(self, scope: Any, receive: Receive, send: Send) -> Response[Any]:
        path = scope["path"]
        handler = _HANDLERS[path]
        # What the framework would add, for the request, the metrics and the log.
        scope |= {
            "litestar_app": self._app,
            "route_handler": handler,
            "path_template": path,
            "path_params": {},
        }
        request = ApiRequest(scope, receive, send)
        try:
            await self._authenticator(request)
            check_address(request)
            if not await request.body():
                raise missing_body()
            result = await handler.fn(request, await request.json())
        except Exception as error:  # noqa: BLE001  each becomes a response
            return response_to(request, error)
        if isinstance(result, Response):
            return result
        return Response(result, status_code=handler.status_code)


def _is_plain_report(scope: Any) -> bool:
    """Return True for a report, except if its query or its host has to be refused."""
    return (
        scope["type"] == "http"
        and scope["method"] == "POST"
        and scope["path"] in _HANDLERS
        and not scope["query_string"]
        and all(name != b"host" or _PLAIN_HOST.fullmatch(value) for name, value in scope["headers"])
    )
