"""The application: all routes, the authenticator before them, and one schema for errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, cast

import msgspec
from litestar import Litestar, Request, Response, Router
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from fairbank.rest.async_write_queue import AsyncWriteQueue
from fairbank.rest.auth.authenticator import Authenticator
from fairbank.rest.context import AppContext
from fairbank.rest.dry_run import dry_run_response
from fairbank.rest.input_checks import check_address, check_query
from fairbank.rest.openapi import describe, query_parameters
from fairbank.rest.problems import HANDLERS, allowed
from fairbank.rest.request import ApiRequest
from fairbank.rest.routes import activity, alloc, failure, job, project, server, statement, usage
from fairbank.rest.thread_pools import THREADS, ThreadPools
from fairbank.service.dry_run import DryRunResult

_MODULES = (server, project, alloc, statement, activity, job, failure, usage)
ROUTES: tuple[HTTPRouteHandler, ...] = tuple(
    value
    for module in _MODULES
    for value in vars(module).values()
    if isinstance(value, HTTPRouteHandler)
)


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document of all routes."""
    return describe(ROUTES)


def create_app(context: AppContext, *, threads: int = THREADS) -> Litestar:
    """Create the application.

    Args:
        context: the services and settings of the server.
        threads: requests in work at the same time, besides sign-ins and reports of runs
            (`rest.thread_pools`); further requests wait.
    """
    app = Litestar(
        # One router: with three methods on a path, litestar would prepare the first one thrice.
        [Router("/", route_handlers=ROUTES)],
        before_request=_before,
        exception_handlers={**HANDLERS, DryRunResult: dry_run_response},
        request_class=ApiRequest,
        openapi_config=None,
        logging_config=None,
        debug=False,  # even if the environment says otherwise: debug pages show internals
        pdb_on_exception=False,
        lifespan=[_lifespan],
    )
    equip(app, context, threads=threads)
    return app


def equip(app: Litestar, context: AppContext, *, threads: int = THREADS) -> None:
    """Let an application that is not running serve this context. Its routes stay as they are.

    Args:
        app: from `create_app`; what it served before is replaced.
        context: services and name of the bank.
        threads: as in `create_app`.
    """
    pools = ThreadPools(threads)
    app.state = State(
        {
            "context": context,
            "authenticator": Authenticator(context, pools),
            "thread_pools": pools,
            "document": msgspec.json.encode(document()),
            "parameters": query_parameters(document()),
        }
    )


async def _before(request: Request[Any, Any, Any]) -> Response[None] | None:
    api_request, state = cast("ApiRequest", request), request.app.state
    await state["authenticator"](api_request)
    check_address(api_request)
    check_query(api_request, state["parameters"])
    return _options_response(api_request) if request.method == "OPTIONS" else None


@asynccontextmanager
async def _lifespan(app: Litestar) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    queue = app.state["context"].services.write_queue
    app.state.write_queue = AsyncWriteQueue(queue, loop)
    with queue.in_loop(loop), app.state["thread_pools"].running():
        yield


def _options_response(request: ApiRequest) -> Response[None]:
    """Answer OPTIONS. litestar's own answer knows only the methods of the first route."""
    template = request.scope["path_template"]
    methods = {
        method
        for route in request.app.routes
        if route.path_format == template
        for method in getattr(route, "methods", ())
    }
    return Response(None, status_code=204, headers={"Allow": allowed(methods)})
