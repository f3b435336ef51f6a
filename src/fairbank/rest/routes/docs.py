"""The OpenAPI document and a page to browse it, served from files of the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Response
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import READING, open_route

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {
    "swagger-ui-bundle.js": ("static/swagger-ui/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("static/swagger-ui/swagger-ui.css", "text/css"),
    "start.js": ("static/start.js", "text/javascript"),
}


@open_route("/openapi.json", sync_to_thread=False)
def show_document(request: ApiRequest) -> Response[Any]:
    """Return this document."""
    return Response(request.app.state.document, media_type="application/json")


@open_route("/docs", media_type="text/html")
def show_docs() -> Response[str]:
    """Return a page to browse this document and to try requests."""
    return Response(_read("static/index.html").decode(), headers={"content-security-policy": _CSP})


@open_route("/docs/{file:str}", media_type="text/javascript", responses={404: READING[404]})
def show_asset(file: FromPath[str]) -> Response[bytes]:
    """Return a script or a style sheet of that page."""
    if file not in _FILES:
        raise NotFoundException
    path, media_type = _FILES[file]
    headers = {"cache-control": "public, max-age=86400"}
    return Response(_read(path), media_type=media_type, headers=headers)


@cache
def _read(path: str) -> bytes:
    return files("fairbank.rest").joinpath(path).read_bytes()


ROUTES = (show_document, show_docs, show_asset)
