"""The verbs of HTTP as our routes use them: in a worker thread unless said otherwise, with every answer they may give written down."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import litestar
from litestar.openapi.datastructures import ResponseSpec

from fairbank.rest.bodies.answers import Granted, Problem, Single
from fairbank.rest.foretelling import FORETOLD
from fairbank.rest.problems import PROBLEM_JSON


def _problem(description: str) -> ResponseSpec:
    return ResponseSpec(
        Problem, description=description, media_type=PROBLEM_JSON, generate_examples=False
    )


OPEN = {
    400: _problem("Not understood; the field is named"),
    500: _problem("A mistake of ours; the log has it under the number told"),
    503: _problem("Too much is waiting; see Retry-After"),
}
READING = {
    401: _problem("Nobody signed in, or the credential is no good"),
    403: _problem("Not allowed"),
    404: _problem("There is no such thing, or not for you"),
    **OPEN,
}
REFUSING = {
    402: _problem("The bank says no: it cannot be paid"),
    409: _problem(
        "The bank says no: it exists with other content, or is in a state that does not allow this"
    ),
}
WRITING = {
    **REFUSING,
    413: _problem("The body is too large"),
    415: _problem("The body is not JSON"),
    **READING,
}


def again(kind: Any) -> dict[int, ResponseSpec]:
    """The 200 of a route that answers 201 when it makes something new."""
    return {
        200: ResponseSpec(
            kind,
            description="There already, or granted before under the same key",
            generate_examples=False,
        )
    }


AGAIN = again(Single[Granted])

Decorator = Callable[[Callable[..., Any]], litestar.handlers.HTTPRouteHandler]


def reads(path: str, **more: Any) -> Decorator:
    """GET, for whoever signed in."""
    return _route(litestar.get, path, READING, more)


def opens(path: str, **more: Any) -> Decorator:
    """GET, for anybody."""
    return _route(litestar.get, path, OPEN, {"opt": {"open": True}, "security": [], **more})


def writes(verb: Callable[..., Any], path: str, **more: Any) -> Decorator:
    """POST, PUT, PATCH or DELETE. What has no `opt` of its own changes the books in somebody's name, and can be foretold."""
    more.setdefault("opt", FORETOLD)
    return _route(verb, path, WRITING, more)


def _route(
    verb: Callable[..., Any], path: str, responses: dict[int, ResponseSpec], more: dict[str, Any]
) -> Decorator:
    more.setdefault("sync_to_thread", True)  # None for a coroutine
    more.setdefault(
        "response_description", "What was asked for" if verb is litestar.get else "Done"
    )

    def route(handler: Callable[..., Any]) -> litestar.handlers.HTTPRouteHandler:
        made: litestar.handlers.HTTPRouteHandler = verb(
            path,
            operation_id=handler.__name__,
            description=cleandoc(handler.__doc__ or ""),
            responses={**responses, **more.pop("responses", {})},
            **more,
        )(handler)
        return made

    return route
