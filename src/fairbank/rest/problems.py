"""Errors as responses: one schema for all, with the field and the remedy, and no internals."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, cast, get_args

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ExceptionHandlersMap
from msgspec import Struct

from fairbank.bank.refusals import NOTHING_KNOWN, Refusal, RemedyFacts, sentence
from fairbank.core.errors import Busy, FairbankError, InvalidInput, Unauthenticated
from fairbank.core.validation import ValidationFault
from fairbank.rest.auth.credentials import CHALLENGE
from fairbank.rest.json_body import SEE_DOCS, missing_body
from fairbank.rest.parameters import SENT_NAMES
from fairbank.rest.request import BODY_MAX
from fairbank.rest.schemas.answers import Problem
from fairbank.rest.schemas.envelope import refusal_details, set_texts

PROBLEM_JSON = "application/problem+json"

_log = logging.getLogger(__name__)


class RefusalError(Exception):
    """A refusal of the bank, raised by a handler to become the response. `names` are those of
    fields that the request calls otherwise, `absent` the fields that it left out.
    """

    def __init__(
        self,
        refusal: Refusal,
        known: RemedyFacts = NOTHING_KNOWN,
        names: Mapping[str | None, str] = {},
        absent: Collection[str] = (),
    ) -> None:
        super().__init__(refusal.reason.name)
        self.refusal, self.known, self.names, self.absent = refusal, known, names, absent


def problem_of(
    title: str, status: int, detail: str, remedy: str | None, field: str | None = None
) -> Problem:
    """Return a problem without a refusal.

    Args:
        title: the title of the kind; it also gives the type.
        status: HTTP status.
        detail: the error in one sentence.
        remedy: what may help.
        field: the field that caused it.
    """
    kind = f"/problem/{title.replace(' ', '-')}"
    return Problem(type=kind, title=title, status=status, detail=detail, field=field, remedy=remedy)


def problem_of_error(error: FairbankError) -> Problem:
    """Return the problem for an error."""
    return problem_of(error.title, error.status, error.message, error.remedy, error.field)


def problem_of_refusal(
    refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN, *, fields: Collection[str] = ()
) -> Problem:
    """Return the problem for a refusal.

    Args:
        known: facts that make the remedies more precise.
        fields: names of the fields that the request may have.
    """
    details = refusal_details(refusal, known)
    set_texts(details)
    return Problem(
        type="/problem/refused",
        title="refused",
        status=refusal.kind.status,
        detail=sentence(refusal, known),
        field=field_of(refusal, fields),
        remedy=details.remedies[0],
        amounts_in="SU-minutes",
        refusal=details,
    )


def problem_of_failure(where: str, error: Exception) -> Problem:
    """Log a failure of the server under a number, and return the problem with the number."""
    number = secrets.token_hex(6)
    _log.error("failure %s in %s", number, where, exc_info=error)
    return problem_of(
        "failure",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"the server failed; its log has the failure under {number}",
        "give this number to the administrators; whether the request was carried out is not known",
    )


def _response(
    request: Request[Any, Any, Any], problem: Problem, headers: Mapping[str, str] | None = None
) -> Response[Problem]:
    """Return a problem as a response, with the name of the bank."""
    named = msgspec.structs.replace(problem, bank=request.app.state["context"].name)
    return Response(named, status_code=problem.status, media_type=PROBLEM_JSON, headers=headers)


def headers_of(error: FairbankError) -> dict[str, str]:
    """Return the headers of an error: how to authenticate, when to retry."""
    headers: dict[str, str] = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = CHALLENGE
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(error.retry_after_seconds if isinstance(error, Busy) else 5)
    return headers


def _on_error(request: Request[Any, Any, Any], error: FairbankError) -> Response[Problem]:
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("%s: %s", error.title, error.message)
    return _response(request, problem_of_error(error), headers_of(error))


def _on_refusal(request: Request[Any, Any, Any], error: RefusalError) -> Response[Problem]:
    fields = fields_of(request.route_handler).difference(error.absent)
    problem = problem_of_refusal(error.refusal, error.known, fields=fields)
    field = error.names.get(problem.field, problem.field)
    return _response(request, msgspec.structs.replace(problem, field=field))


def _on_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """Answer what the framework refuses: addresses, methods, sizes, types, parameters."""
    status = HTTPStatus(error.status_code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _on_failure(request, error)
    if isinstance(error, ValidationException):
        return _response(request, problem_of_error(_bad_parameter(request, error)))
    if error.detail == _BAD_HOST:
        return _response(
            request,
            problem_of_error(
                InvalidInput(
                    "the header Host is not a name", field="Host", remedy="send one: Host: NAME"
                )
            ),
        )
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    if "allow" in headers:
        headers["allow"] = allowed(headers["allow"].split(", "))
    match status:
        case HTTPStatus.NOT_FOUND:
            detail, remedy = "no such address", "/docs lists all"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            detail = f"this address does not accept {request.method}"
            remedy = f"it accepts {headers.get('allow')}"
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            detail = f"the body has more than {BODY_MAX} bytes"
            remedy = f"send at most {BODY_MAX} bytes; split it"
        case HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
            content_type = request.headers.get("content-type")
            sent = f"is {content_type[:64]!r}" if content_type else "is missing"
            detail = f"the header Content-Type {sent}"
            remedy = "send JSON, with Content-Type: application/json"
        case _:
            detail, remedy = str(error.detail)[:200], SEE_DOCS
    return _response(request, problem_of(status.phrase.lower(), status, detail, remedy), headers)


def allowed(methods: Iterable[str]) -> str:
    """Return the value of `Allow`. A route with GET also answers HEAD (`server.middleware`)."""
    names = set(methods)
    return ", ".join(sorted(names | {"HEAD"} if "GET" in names else names))


def _on_failure(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    where = f"{request.method} {request.scope.get('path_template', '?')}"
    return _response(request, problem_of_failure(where, error))


_BAD_HOST = "Invalid host header"  # the framework's message


def _bad_parameter(request: Request[Any, Any, Any], error: ValidationException) -> InvalidInput:
    first = next(iter(error.extra or ()), None)
    if not isinstance(first, dict):
        fault = ValidationFault("invalid value", "", str(error.detail))
        return InvalidInput(fault.message, remedy=fault.remedy or SEE_DOCS)
    name = str(first.get("key", ""))
    if name == "data":
        return missing_body()
    fault = ValidationFault("invalid value", SENT_NAMES.get(name, name), first.get("message", ""))
    value = request.query_params.get(fault.path, request.path_params.get(fault.path))
    shown = ":" if value is None else f" is {str(value)[:64]!r},"
    return InvalidInput(
        f"{fault.path}{shown} {fault.message}", field=fault.path, remedy=fault.remedy or SEE_DOCS
    )


_HANDLERS: Mapping[type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Problem]]] = {
    FairbankError: _on_error,
    RefusalError: _on_refusal,
    HTTPException: _on_http,
    Exception: _on_failure,
}
HANDLERS = cast("ExceptionHandlersMap", _HANDLERS)


def response_to(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Return the response to an error that a handler or a check raised."""
    handler = next(_HANDLERS[kind] for kind in type(error).__mro__ if kind in _HANDLERS)
    return handler(request, error)


def field_of(refusal: Refusal, fields: Collection[str]) -> str | None:
    """Return the field of a request that a refusal is about, of those that the request may have."""
    named = (refusal.facts or {}).get("field")
    if named in fields:
        return named
    return next((name for name in refusal.reason.info.request_fields if name in fields), None)


@cache
def fields_of(handler: HTTPRouteHandler) -> frozenset[str]:
    """Return the fields of a request to this route, in its address, headers and body, as sent."""
    names = {SENT_NAMES.get(name, name) for name in handler.parsed_fn_signature.parameters}
    data = handler.parsed_data_field
    return frozenset(names if data is None else names | fields_of_body(data.annotation))


def fields_of_body(kind: Any) -> frozenset[str]:
    """Return the fields of a schema, or of all schemas of a union."""
    schemas = [
        schema
        for schema in (kind, *get_args(kind))
        if isinstance(schema, type) and issubclass(schema, Struct)
    ]
    return frozenset(name for schema in schemas for name in schema.__struct_encode_fields__)
