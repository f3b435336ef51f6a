"""The OpenAPI document: paths from the routes, shapes from the values that are really read and written."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, License, SecurityScheme

from fairbank import __version__
from fairbank.rest import foretelling
from fairbank.rest.asking import Asking
from fairbank.rest.bodies import answers, requests

_ABOUT = """\
Amounts are SU-minutes, whole numbers. Instants are UTC. Lists come in pages: `limit`, and `after` with the `next` of the page before.

Entries are numbered as they are written, those of one allocation in their order, whichever server writes them. Where several servers
write, an entry of one allocation may come into sight a moment after one of another that has a higher number: who follows the journal
page by page follows the statement of each allocation, or reads the last entries again.

Who asks: on the Unix socket the kernel says it. Elsewhere a token, or a MUNGE credential made for this one request.
Staff may act as another user: `X-Fairbank-As: UID or name`; the journal keeps it.

What changes the books in somebody's name takes `dry-run=true`: nothing is changed, and the answer is the entries that would be written now,
or the refusal that the same request would get. It tells of no entries where the same was carried out before, or is so already.

Whatever answers GET answers HEAD.

A user may have 512 connections over the Unix socket, a host as many over TCP, both fewer when many are open.
One that sends no whole head within 5 s is closed.

What goes wrong is told as `application/problem+json`, with the field and the remedy. A no of the bank is a problem with `refusal`,
whose figures are null where nobody looked what there is.
"""

_SCHEMES = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="Authorization: Bearer fbk_..."
    ),
    "munge": SecurityScheme(
        type="apiKey",
        name="Authorization",
        security_scheme_in="header",
        description="Authorization: Munge MUNGE:...: made for method, path, query, body, server's name and a nonce; good once",
    ),
}
# The objects that operations are about, in the order of the document, with the first words of their addresses.
_TAGS = {
    "project": ("Projects and their members", ("project",)),
    "alloc": (
        "Allocations: credit of a project on a resource for a time; balances, statements, movements",
        ("alloc", "balance", "entry"),
    ),
    "job": ("Runs of jobs: what clusters report of them, and what they cost", ("job",)),
    "failure": ("Jobs that the bank refused", ("failure",)),
    "activity": ("What moved units, in HADM's words", ("activity", "credit", "predebit", "debit")),
    "usage": ("Who used what, when and where", ("usage",)),
    "share": ("Fair share from day to day", ("share",)),
    "quote": ("Prices before a job is submitted, and where it could run", ("quote", "partition")),
    "token": ("Secrets for programs", ("token",)),
    "audit": ("How far the books are", ("audit",)),
    "server": (
        "The server itself, its prices, and who signed in",
        ("health", "whoami", "cluster", "metrics", "openapi.json", "docs"),
    ),
}
_TAG_OF = {word: tag for tag, (_, words) in _TAGS.items() for word in words}

REF = "#/components/schemas/{name}"
_MODULE = re.compile(rb"%s\.[a-z]+\." % re.escape(answers.__name__).encode())
_REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


def describe(routes: Sequence[HTTPRouteHandler]) -> dict[str, Any]:
    """The document about `routes`.

    The paths come from an application that is never served: the framework gives an application with a document routes of
    its own, which nobody asked for. The shapes are msgspec's, which knows more of them than the framework: that unknown
    fields are refused, patterns, tags.
    """
    config = OpenAPIConfig(
        title="Fairbank",
        version=__version__,
        description=_ABOUT,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(security_schemes=dict(_SCHEMES)),
        security=[{"token": []}, {"munge": []}],
        path="/unserved",
    )
    unserved = Litestar(
        list(routes), request_class=Asking, openapi_config=config, logging_config=None
    )
    drawn = msgspec.json.encode(unserved.openapi_schema.to_schema())
    document: dict[str, Any] = msgspec.json.decode(_MODULE.sub(b"", drawn))
    open_to_all = {str(route.operation_id) for route in routes if route.opt.get("open")}
    dry_runs = {
        str(route.operation_id): how for route in routes if (how := route.opt.get("foretold"))
    }
    for path, item in document["paths"].items():
        for operation in item.values():
            _tidy(operation, open_to_all)
            operation["tags"] = [_TAG_OF[path.split("/")[1]]]
            if operation["operationId"] in dry_runs:
                foretelling.described(operation, dry_runs[operation["operationId"]])
    document["tags"] = [{"name": tag, "description": about} for tag, (about, _) in _TAGS.items()]
    document["components"]["schemas"] = _shapes(
        {*document["components"]["schemas"], foretelling.PLANNED}
    )
    return document


def _tidy(operation: dict[str, Any], open_to_all: Container[str]) -> None:
    """What the framework leaves out or says too much."""
    operation["summary"] = operation["description"].partition(".")[0]
    operation.pop("deprecated", None)
    if operation["operationId"] in open_to_all:
        operation["security"] = []
    for parameter in operation.get("parameters", ()):
        parameter.pop("deprecated", None)
        parameter.pop("allowEmptyValue", None)
        parameter.pop("allowReserved", None)
        parameter["schema"] = _present(parameter["schema"])


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is there; one that is not there is no null."""
    found = dict(schema)
    for each in found.pop("oneOf", ()):
        if each != {"type": "null"}:
            found |= each
    if isinstance(found.get("type"), list):
        found["type"] = next(each for each in found["type"] if each != "null")
    if "enum" in found:
        found["enum"] = [each for each in found["enum"] if each is not None]
    if found.get("type") == "integer":
        found.setdefault("minimum", 0)  # the framework forgets a bound of 0
    return found


def _shapes(wanted: Iterable[str]) -> dict[str, Any]:
    """msgspec's description of each shape that the framework named, and of what these are made of."""
    _, known = msgspec.json.schema_components(list(_structs()), ref_template=REF)
    reports = [
        {"$ref": REF.format(name=each.__name__)}
        for each in (requests.HoldReport, requests.AdjustReport, requests.CompleteReport)
    ]
    known["Reports"]["properties"]["reports"]["items"] = {"anyOf": reports}
    found: dict[str, Any] = {}
    waiting = set(wanted)
    while waiting:
        name = waiting.pop()
        found[name] = known[name]
        waiting |= set(_REFERENCE.findall(msgspec.json.encode(known[name]).decode())) - found.keys()
    return dict(sorted(found.items()))


def _structs() -> Iterator[Any]:
    """Every shape in `bodies`; the envelopes are filled with each of the rows."""
    rows = [
        each
        for each in vars(answers).values()
        if _is_struct(each) and not getattr(each, "__parameters__", ())
    ]
    yield from rows
    yield from (each for each in vars(requests).values() if _is_struct(each))
    yield from (envelope[row] for envelope in (answers.Listing, answers.Single) for row in rows)


def _is_struct(each: object) -> bool:
    return (
        isinstance(each, type)
        and issubclass(each, msgspec.Struct)
        and each.__module__.startswith("fairbank.")
    )


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def queries_of(document: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """The query parameters of each operation, by its id: their schemas by their names."""
    return {
        operation["operationId"]: {
            each["name"]: each["schema"]
            for each in operation.get("parameters", ())
            if each["in"] == "query"
        }
        for operation in _operations(document)
    }
