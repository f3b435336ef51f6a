"""Decorators of routes: GET, and methods that write, with every response they may give."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import litestar
from litestar.openapi.datastructures import ResponseSpec

from fairbank.rest.dry_run import LISTS_ENTRIES
from fairbank.rest.problems import PROBLEM_JSON
from fairbank.rest.schemas.answers import Granted, ItemResponse, Problem


def _problem(description: str) -> ResponseSpec:
    return ResponseSpec(
        Problem, description=description, media_type=PROBLEM_JSON, generate_examples=False
    )


OPEN = {
    400: _problem("Invalid request; `field` names the field"),
    500: _problem("Failure of the server; its log has it under the number given"),
    503: _problem("Overloaded; see Retry-After"),
}
READING = {
    401: _problem("Not authenticated, or the credential is invalid"),
    403: _problem("Not allowed"),
    404: _problem("No such object, or you may not see it"),
    **OPEN,
}
REFUSING = {
    402: _problem("Refused: the credit does not suffice"),
    409: _problem("Refused: it exists with other content, or its state does not allow this"),
}
WRITING = {
    **REFUSING,
    413: _problem("The body is too large"),
    415: _problem("The body is not JSON"),
    **READING,
}


def existing(kind: Any) -> dict[int, ResponseSpec]:
    """Return the 200 of a route that answers 201 for a new object."""
    description = "It existed, or was granted before under the same key"
    return {200: ResponseSpec(kind, description=description, generate_examples=False)}


GRANTED_BEFORE = existing(ItemResponse[Granted])

Decorator = Callable[[Callable[..., Any]], litestar.handlers.HTTPRouteHandler]


def read_route(path: str, **options: Any) -> Decorator:
    """Register a GET for authenticated users."""
    return _route(litestar.get, path, READING, options)


def open_route(path: str, **options: Any) -> Decorator:
    """Register a GET for everybody."""
    return _route(litestar.get, path, OPEN, {"opt": {"open": True}, "security": [], **options})


def write_route(method: Callable[..., Any], path: str, **options: Any) -> Decorator:
    """Register a POST, PUT, PATCH or DELETE. Without an `opt` it has a dry run."""
    options.setdefault("opt", LISTS_ENTRIES)
    return _route(method, path, WRITING, options)


def _route(
    method: Callable[..., Any],
    path: str,
    responses: dict[int, ResponseSpec],
    options: dict[str, Any],
) -> Decorator:
    options.setdefault("sync_to_thread", True)  # None for a coroutine
    options.setdefault(
        "response_description", "The data" if method is litestar.get else "Carried out"
    )

    def decorate(handler: Callable[..., Any]) -> litestar.handlers.HTTPRouteHandler:
        route: litestar.handlers.HTTPRouteHandler = method(
            path,
            operation_id=handler.__name__,
            description=cleandoc(handler.__doc__ or ""),
            responses={**responses, **options.pop("responses", {})},
            **options,
        )(handler)
        return route

    return decorate
