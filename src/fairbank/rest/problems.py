"""What a client is told when something goes wrong: one shape for all of it, with the field and the remedy, and nothing of our insides."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, cast, get_args

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ExceptionHandlersMap
from msgspec import Struct

from fairbank.bank.refusals import NOTHING_KNOWN, Help, Refusal, remedies, sentence
from fairbank.bank.run import RunState
from fairbank.core.errors import Busy, FairbankError, InvalidInput, Unauthenticated
from fairbank.rest.asking.misfits import DOCUMENTED, in_words, missing_body, remedy_for
from fairbank.rest.asking.params import AS_SENT
from fairbank.rest.bodies.answers import Problem, Refused, Resolution
from fairbank.rest.sign_in.authorization import CHALLENGE

PROBLEM_JSON = "application/problem+json"

_log = logging.getLogger(__name__)


class SaidNo(Exception):
    """The bank's no on its way to the client."""

    def __init__(self, refusal: Refusal, known: Help = NOTHING_KNOWN) -> None:
        super().__init__(refusal.reason.name)
        self.refusal, self.known = refusal, known


def problem_of_trouble(trouble: FairbankError) -> Problem:
    return Problem(
        type=f"/problem/{_dashed(trouble.title)}",
        title=trouble.title,
        status=trouble.status,
        detail=trouble.message,
        field=trouble.field,
        remedy=trouble.remedy,
    )


def problem_of_refusal(
    no: Refusal, known: Help = NOTHING_KNOWN, *, there: Collection[str] = ()
) -> Problem:
    """`there` are the fields that the request may have."""
    told, field = refused(no, known), field_of(no, there)
    return Problem(
        type="/problem/refused",
        title="refused",
        status=no.kind.status,
        detail=sentence(no, known),
        field=field,
        remedy=told.remedies[0],
        refusal=told,
    )


def field_of(refusal: Refusal, fields: Collection[str]) -> str | None:
    """Return the field of a request that a refusal is about, of those that the request may have."""
    blamed = (refusal.facts or {}).get("field")
    if blamed in fields:
        return blamed
    return next((each for each in refusal.reason.info.request_fields if each in fields), None)


@cache
def fields_of(handler: HTTPRouteHandler) -> frozenset[str]:
    """Return the fields of a request to this route, in its address, headers and body, as sent."""
    names = {AS_SENT.get(each, each) for each in handler.parsed_fn_signature.parameters}
    data = handler.parsed_data_field
    return frozenset(names if data is None else names | fields_of_body(data.annotation))


def fields_of_body(kind: Any) -> frozenset[str]:
    """Return the fields of a schema, or of all schemas of a union."""
    schemas = [
        each
        for each in (kind, *get_args(kind))
        if isinstance(each, type) and issubclass(each, Struct)
    ]
    return frozenset(name for each in schemas for name in each.__struct_encode_fields__)


def refused(no: Refusal, known: Help = NOTHING_KNOWN) -> Refused:
    """The figures of a no, with what would help."""
    return Refused(
        reason=no.reason.name,
        **no.figures._asdict(),
        allocation=no.allocation,
        project=no.project,
        resource=no.resource,
        owner=no.owner,
        run=no.run,
        entry=no.entry,
        remedies=list(remedies(no, known)),
        resolution=_resolution(no),
    )


def _resolution(no: Refusal) -> Resolution | None:
    was = no.resolution
    if not was or was.state is RunState.HELD:
        return None
    return Resolution(state=was.state.value, outcome=was.outcome, elapsed=was.elapsed_seconds)


def response_of(problem: Problem, headers: Mapping[str, str] | None = None) -> Response[Problem]:
    return Response(problem, status_code=problem.status, media_type=PROBLEM_JSON, headers=headers)


# Exceptions become answers.


def headers_of(trouble: FairbankError) -> dict[str, str]:
    """What the answer says beside the problem: how to sign in, when to come back."""
    headers: dict[str, str] = {}
    if isinstance(trouble, Unauthenticated):
        headers["WWW-Authenticate"] = CHALLENGE
    if trouble.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(
            trouble.retry_after_seconds if isinstance(trouble, Busy) else 5
        )
    return headers


def _on_trouble(_: Request[Any, Any, Any], trouble: FairbankError) -> Response[Problem]:
    if trouble.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("%s: %s", trouble.title, trouble.message)
    return response_of(problem_of_trouble(trouble), headers_of(trouble))


def _on_refusal(request: Request[Any, Any, Any], no: SaidNo) -> Response[Problem]:
    return response_of(
        problem_of_refusal(no.refusal, no.known, there=fields_of(request.route_handler))
    )


def _on_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """What the framework refuses: addresses, methods, sizes, types, parameters."""
    status = HTTPStatus(error.status_code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _on_anything(request, error)
    if isinstance(error, ValidationException):
        return response_of(problem_of_trouble(_bad_parameter(error)))
    if error.detail == _BAD_HOST:
        return response_of(
            problem_of_trouble(
                InvalidInput(
                    "the header Host is no name", field="Host", remedy="send one: Host: NAME"
                )
            )
        )
    detail, remedy = _SAYINGS.get(status, (str(error.detail)[:200], DOCUMENTED))
    title = status.phrase.lower()
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    if "allow" in headers:
        headers["allow"] = allowed(headers["allow"].split(", "))
    return response_of(
        Problem(
            type=f"/problem/{_dashed(title)}",
            title=title,
            status=status,
            detail=detail,
            remedy=remedy,
        ),
        headers,
    )


def allowed(methods: Iterable[str]) -> str:
    """The methods of an address, for `Allow`. What answers GET answers HEAD (`rest.server.front`)."""
    there = set(methods)
    return ", ".join(sorted(there | {"HEAD"} if "GET" in there else there))


def _on_anything(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """A mistake of ours: the log has it all, the client a number to name."""
    number = secrets.token_hex(6)
    _log.error(
        "failure %s in %s %s",
        number,
        request.method,
        request.scope.get("path_template", "?"),
        exc_info=error,
    )
    return response_of(
        Problem(
            type="/problem/failure",
            title="failure",
            status=HTTPStatus.INTERNAL_SERVER_ERROR,
            detail=f"something is wrong with the server; its log tells of failure {number}",
            remedy="tell the staff this number; whether the request was carried out is not known",
        )
    )


_BAD_HOST = "Invalid host header"  # the framework's words
_SAYINGS: Mapping[int, tuple[str, str]] = {
    404: ("there is no such address here", "/docs lists all"),
    405: ("this address does not take that method", "see Allow"),
    413: ("the body is too large", "send at most 4 MiB; split it"),
    415: ("the body is not JSON", "send Content-Type: application/json"),
}


def _bad_parameter(error: ValidationException) -> InvalidInput:
    first = next(iter(error.extra or ()), None)
    if not isinstance(first, dict):
        detail = str(error.detail)
        return InvalidInput(in_words(detail), remedy=remedy_for(detail))
    field, said = str(first.get("key", "")), str(first.get("message", ""))
    field = AS_SENT.get(field, field)
    if field == "data":
        return missing_body()
    return InvalidInput(f"{field}: {in_words(said)}", field=field, remedy=remedy_for(said))


def _dashed(title: str) -> str:
    return title.replace(" ", "-")


_ANSWERS: Mapping[type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Problem]]] = {
    FairbankError: _on_trouble,
    SaidNo: _on_refusal,
    HTTPException: _on_http,
    Exception: _on_anything,
}
HANDLERS = cast("ExceptionHandlersMap", _ANSWERS)


def response_to(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """What the framework would find in HANDLERS for this error."""
    return next(answer for kind, answer in _ANSWERS.items() if isinstance(error, kind))(
        request, error
    )
