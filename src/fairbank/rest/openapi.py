"""OpenAPI document: paths from the routes, schemas from the types that are read and written."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, get_args

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, License, SecurityScheme

from fairbank import __version__
from fairbank.cluster import run_report
from fairbank.rest.dry_run import RESPONSE_SCHEMA, describe_dry_run
from fairbank.rest.request import ApiRequest
from fairbank.rest.schemas import (
    activity,
    alloc,
    answers,
    job,
    requests,
    server,
    share,
    statement,
    usage,
)

_DESCRIPTION = """\
Amounts are SU-minutes, whole numbers; `display` has them as texts in SU. Times are UTC. Lists have
pages: `limit`, and `after` with the `next` of the previous page.

Journal entries are numbered as they are written, those of one allocation in their order. With
several servers, an entry of one allocation can become visible shortly after one of another
allocation with a higher number. A client that follows the journal page by page should follow the
statement of each allocation, or read the last entries again.

Users are identified by the kernel on the Unix socket; elsewhere by a token, or by a MUNGE
credential that is created for each request. Staff may act as another user, which the journal
records: `X-Fairbank-As: UID or name`.

Requests that change the ledger accept `dry-run=true`: nothing is changed, and the response lists
the entries that would be written now, or is the refusal. The list is empty if the same request was
carried out before, or if nothing would change.

Every route with GET also answers HEAD.

A user may have 512 connections over the Unix socket, a host as many over TCP; fewer when many are
open. A connection that sends no complete head within 5 s is closed.

Errors are `application/problem+json`, with the field and the remedy. A refusal of the bank is a
problem with `refusal`. Its amounts are null if the bank did not look them up.
"""

_SCHEMES = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="Authorization: Bearer fbk_..."
    ),
    "munge": SecurityScheme(
        type="apiKey",
        name="Authorization",
        security_scheme_in="header",
        description=(
            "Authorization: Munge MUNGE:...: created for method, path, query, body, server name "
            "and a nonce; valid once"
        ),
    ),
}
# Tags in the order of the document, with the first words of their paths.
_TAGS = {
    "project": ("Projects and their members", ("project",)),
    "alloc": (
        (
            "Allocations: credit of a project on a resource for a period; balances, statements, "
            "movements"
        ),
        ("alloc", "balance", "entry"),
    ),
    "job": ("Runs of jobs: reports of clusters, and costs", ("job",)),
    "failure": ("Jobs that the bank refused", ("failure",)),
    "activity": (
        "Movements of credit in HADM's terms",
        ("activity", "credit", "predebit", "debit"),
    ),
    "usage": ("Usage by group and of the whole centre", ("usage", "centre")),
    "share": ("Daily fair-share values", ("share",)),
    "quote": ("Prices of jobs before they are submitted", ("quote",)),
    "token": ("API tokens", ("token",)),
    "audit": ("Last links of the journal's hash chains", ("audit",)),
    "server": (
        "The server, its prices, and the authenticated user",
        ("health", "whoami", "cluster", "metrics", "openapi.json", "docs"),
    ),
}
_TAG_OF = {word: tag for tag, (_, words) in _TAGS.items() for word in words}

_RESPONSES = (activity, alloc, answers, job, server, share, statement, usage)
_BODIES = (run_report, requests, share)

_REF = "#/components/schemas/{name}"
_MODULE_PREFIX = re.compile(rb"fairbank\.rest\.schemas\.[a-z]+\.")
_ENVELOPE = re.compile(r"\A(?:List|Item)Response_|_\Z")
_REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


def describe(routes: Sequence[HTTPRouteHandler]) -> dict[str, Any]:
    """Return the OpenAPI document of routes.

    The paths come from a second application that is never served: litestar adds routes of its own
    to an application with a document. The schemas come from msgspec, which describes more of them
    than litestar: unknown fields are refused, patterns, tags.
    """
    config = OpenAPIConfig(
        title="Fairbank",
        version=__version__,
        description=_DESCRIPTION,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(security_schemes=dict(_SCHEMES)),
        security=[{"token": []}, {"munge": []}],
        path="/unserved",
    )
    unserved = Litestar(
        list(routes), request_class=ApiRequest, openapi_config=config, logging_config=None
    )
    encoded = msgspec.json.encode(unserved.openapi_schema.to_schema())
    document: dict[str, Any] = msgspec.json.decode(_MODULE_PREFIX.sub(b"", encoded))
    open_routes = {str(route.operation_id) for route in routes if route.opt.get("open")}
    kinds = {str(route.operation_id): route.opt.get("dry_run") for route in routes}
    dry_runs = {operation: kind for operation, kind in kinds.items() if kind}
    for path, item in document["paths"].items():
        for operation in item.values():
            _complete(operation, open_routes)
            operation["tags"] = [_TAG_OF[path.split("/")[1]]]
            if operation["operationId"] in dry_runs:
                describe_dry_run(operation, dry_runs[operation["operationId"]])
    document["tags"] = [{"name": tag, "description": text} for tag, (text, _) in _TAGS.items()]
    names = {*document["components"]["schemas"], RESPONSE_SCHEMA}
    document["components"]["schemas"] = _schemas(names)
    return document


def _complete(operation: dict[str, Any], open_routes: Container[str]) -> None:
    """Add what litestar leaves out of an operation, and remove what it adds needlessly."""
    operation["summary"] = operation["description"].partition(".")[0]
    operation.pop("deprecated", None)
    if operation["operationId"] in open_routes:
        operation["security"] = []
    for parameter in operation.get("parameters", ()):
        parameter.pop("deprecated", None)
        parameter.pop("allowEmptyValue", None)
        parameter.pop("allowReserved", None)
        parameter["schema"] = _without_null(parameter["schema"])


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that is present: a missing parameter is not null."""
    result = dict(schema)
    for option in result.pop("oneOf", ()):
        if option != {"type": "null"}:
            result |= option
    if isinstance(result.get("type"), list):
        result["type"] = next(name for name in result["type"] if name != "null")
    if "enum" in result:
        result["enum"] = [value for value in result["enum"] if value is not None]
    if result.get("type") == "integer":
        result.setdefault("minimum", 0)  # litestar omits a bound of 0
    return result


def _schemas(names: Iterable[str]) -> dict[str, Any]:
    """Return msgspec's schemas of these types, and of all types that they refer to."""
    _, known = msgspec.json.schema_components(list(_types()), ref_template=_REF)
    reports = [{"$ref": _REF.format(name=kind.__name__)} for kind in get_args(run_report.RunReport)]
    known["ReportBatch"]["properties"]["reports"]["items"] = {"anyOf": reports}
    named = {kind.__name__: kind.schema_name for kind in _types() if hasattr(kind, "schema_name")}
    schemas: dict[str, Any] = {}
    pending = set(names)
    while pending:
        name = pending.pop()
        schemas[name] = known[name]
        references = _REFERENCE.findall(msgspec.json.encode(known[name]).decode())
        pending |= set(references) - schemas.keys()
    for name, schema in schemas.items():
        schema_name = named.get(_ENVELOPE.sub("", name))
        if schema_name and "schema" in schema["properties"]:
            schema["properties"]["schema"] = {"enum": [schema_name]}
    return dict(sorted(schemas.items()))


def _types() -> Iterator[Any]:
    """Return every type in `schemas`, and the envelopes with each type of row."""
    rows = [kind for module in _RESPONSES for kind in _structs(module)]
    rows = [kind for kind in dict.fromkeys(rows) if not getattr(kind, "__parameters__", ())]
    yield from rows
    yield from dict.fromkeys(kind for module in _BODIES for kind in _structs(module))
    for generic in (answers.ListResponse, answers.ItemResponse):
        yield from (generic[row] for row in rows)


def _structs(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    """Return the structs that a module defines."""
    for value in vars(module).values():
        is_struct = isinstance(value, type) and issubclass(value, msgspec.Struct)
        if is_struct and value.__module__ == module.__name__:
            yield value


def query_parameters(document: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the schemas of the query parameters, by operation id and by name."""
    return {
        operation["operationId"]: {
            parameter["name"]: parameter["schema"]
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query"
        }
        for path in document["paths"].values()
        for operation in path.values()
    }
