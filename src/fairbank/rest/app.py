"""The application: all routes, the guard before them, and one shape for whatever goes wrong."""

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

from fairbank.rest import foretelling
from fairbank.rest.addresses import check_address
from fairbank.rest.asking import Asking
from fairbank.rest.asking.queries import Queries
from fairbank.rest.house import House
from fairbank.rest.openapi import describe, queries_of
from fairbank.rest.problems import HANDLERS, allowed
from fairbank.rest.routes import (
    activity,
    alloc,
    audit,
    cluster,
    docs,
    failure,
    granting,
    health,
    job,
    project,
    quote,
    share,
    statement,
    token,
    undoing,
    usage,
)
from fairbank.rest.short_way.lane import Laned
from fairbank.rest.sign_in.doorkeeper import Doorkeeper
from fairbank.rest.teller import Teller
from fairbank.rest.workers import THREADS, Workers
from fairbank.service.dry_run import DryRunResult

_NOUNS = (
    *(health, cluster, project, alloc, granting, statement, undoing, activity, job, failure),
    *(usage, share, quote, token, audit, docs),
)
ROUTES: tuple[HTTPRouteHandler, ...] = tuple(route for noun in _NOUNS for route in noun.ROUTES)


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of all routes."""
    return describe(ROUTES)


def create_app(house: House, *, threads: int = THREADS) -> Laned:
    """The routes over `house`. At most `threads` requests are worked on at a time, beside sign-ins and reports of runs (`rest.workers`);
    the others wait their turn."""
    workers = Workers(threads)
    doorkeeper, queries = Doorkeeper(house, workers), Queries(queries_of(document()))

    async def before(request: Request[Any, Any, Any]) -> Response[None] | None:
        asking = cast("Asking", request)
        await doorkeeper(asking)
        check_address(asking)
        queries.check(asking)
        return _methods_here(asking) if request.method == "OPTIONS" else None

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        app.state.teller = Teller(house.services.counter, loop)
        with house.services.counter.in_loop(loop), workers.at_work():
            yield

    return Laned(
        [
            Router("/", route_handlers=ROUTES)
        ],  # as one: of three verbs on one path, each by itself, the first would be made ready thrice
        doorkeeper=doorkeeper,
        before_request=before,
        exception_handlers={**HANDLERS, DryRunResult: foretelling.told},
        request_class=Asking,
        openapi_config=None,
        logging_config=None,
        debug=False,  # whatever the environment says: its pages show our insides
        pdb_on_exception=False,
        lifespan=[lifespan],
        state=State(
            {"house": house, "workers": workers, "document": msgspec.json.encode(document())}
        ),
    )


def _methods_here(request: Asking) -> Response[None]:
    """The answer to OPTIONS. The framework's own knows only the methods of the route that was entered first."""
    template = request.scope["path_template"]
    methods = {
        method
        for route in request.app.routes
        if route.path_format == template
        for method in getattr(route, "methods", ())
    }
    return Response(None, status_code=204, headers={"Allow": allowed(methods)})
