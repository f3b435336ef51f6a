"""The OpenAPI document: it describes all routes, and its page uses only bundled files."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from fairbank.rest.app import ROUTES, document
from tests.rest.world import MEMBER, World

STATIC = Path(str(files("fairbank.rest"))) / "static"
METHODS = {"get", "post", "put", "patch", "delete"}


def described() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in document()["paths"].items()
        for method, operation in item.items()
    ]


def test_document_describes_every_served_route(shared_world: World) -> None:
    served = {
        (method.lower(), route.path_format)
        for route in shared_world.app.routes
        for method in route.methods
    }
    served -= {("options", route.path_format) for route in shared_world.app.routes}
    assert served == {(method, path) for method, path, _ in described()}


def test_operation_ids_are_unique() -> None:
    assert len(ROUTES) == len(described())
    assert len({operation["operationId"] for _, _, operation in described()}) == len(ROUTES)


def test_document_is_served_unchanged(shared_world: World) -> None:
    answer = shared_world.ask("GET", "/openapi.json")
    assert answer.json() == json.loads(json.dumps(document()))
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    described(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_operation_is_described(method: str, path: str, operation: dict[str, Any]) -> None:
    assert method in METHODS
    assert operation["description"].endswith(".")
    assert operation["summary"]
    assert (
        [tag for tag in operation["tags"] if tag in {known["name"] for known in document()["tags"]}]
        == operation["tags"]
        != []
    )
    for status, response in operation["responses"].items():
        assert response["description"]
        assert (list(response["content"]) == ["application/problem+json"]) == (
            int(status) >= 400
        ), status
    assert {"400", "500", "503"} <= operation["responses"].keys()
    if operation.get("security") != []:
        assert {"401", "403"} <= operation["responses"].keys()


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    described(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_parameter_has_bounds(method: str, path: str, operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if schema["type"] == "integer":
            assert {"minimum", "maximum"} <= schema.keys(), parameter["name"]
        elif schema["type"] == "string" and parameter["in"] != "path":
            assert "maxLength" in schema or "enum" in schema, parameter["name"]


def test_only_listed_routes_need_no_authentication() -> None:
    open_to_all = {path for _, path, operation in described() if operation.get("security") == []}
    assert open_to_all == {"/health", "/openapi.json", "/docs", "/docs/{file}"}


def test_every_reference_resolves() -> None:
    text = json.dumps(document())
    result = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert result == document()["components"]["schemas"].keys()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in document()["components"]["schemas"]
        if name.startswith("New") or name.endswith("Report")
    ],
)
def test_request_bodies_refuse_unknown_fields(name: str) -> None:
    assert document()["components"]["schemas"][name]["additionalProperties"] is False


# --- documentation page ---


def test_bundled_files_are_unchanged() -> None:
    folder = STATIC / "swagger-ui"
    sums = {
        name: digest
        for digest, name in (
            line.split() for line in (folder / "SHA256SUMS").read_text().splitlines()
        )
    }
    names = {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    assert {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names
    } == sums


def test_bundled_files_have_their_license() -> None:
    folder = STATIC / "swagger-ui"
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert "swagger-ui" in (folder / "NOTICE").read_text()
    assert "5." in (STATIC / "README.md").read_text()


def test_docs_page_loads_only_bundled_files(shared_world: World) -> None:
    page = shared_world.ask("GET", "/docs")
    assert re.findall(r'(?:src|href)="([^"]*)"', page.text) == [
        "data:,", "/docs/swagger-ui.css", "/openapi.json", "/docs/swagger-ui-bundle.js",
        "/docs/start.js",
    ]  # fmt: skip
    assert not re.search(r"<script>|<style|style=|onload=", page.text)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("swagger-ui-bundle.js", "text/javascript"),
        ("swagger-ui.css", "text/css"),
        ("start.js", "text/javascript"),
    ],
)
def test_docs_page_files_are_served(shared_world: World, name: str, kind: str) -> None:
    answer = shared_world.ask("GET", f"/docs/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, f"{kind}; charset=utf-8")


def test_docs_page_uses_no_public_validator() -> None:
    assert "validatorUrl: null" in (STATIC / "start.js").read_text()


def test_every_response_has_security_headers(shared_world: World) -> None:
    for path, uid in (("/health", None), ("/alloc", None), ("/alloc", MEMBER), ("/nosuch", None)):
        headers = shared_world.ask("GET", path, uid).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "server" not in headers


def test_document_explains_the_order_of_entry_numbers() -> None:
    """`tests/contracts/test_numbers.py` tests the stores for it."""
    about = " ".join(document()["info"]["description"].split())
    assert "those of one allocation in their order" in about
    assert "shortly after one of another allocation with a higher number" in about
