"""The OpenAPI document and a page to browse it, all from our own files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Response
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from fairbank.rest.asking import Asking
from fairbank.rest.verbs import READING, opens

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {
    "swagger-ui-bundle.js": ("static/swagger-ui/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("static/swagger-ui/swagger-ui.css", "text/css"),
    "start.js": ("static/start.js", "text/javascript"),
}


@opens("/openapi.json", sync_to_thread=False)
def show_document(request: Asking) -> Response[Any]:
    """This document."""
    return Response(request.app.state.document, media_type="application/json")


@opens("/docs", media_type="text/html")
def show_docs() -> Response[str]:
    """A page to browse this document and to try it out."""
    return Response(_read("static/index.html").decode(), headers={"content-security-policy": _CSP})


@opens("/docs/{file:str}", media_type="text/javascript", responses={404: READING[404]})
def show_asset(file: FromPath[str]) -> Response[bytes]:
    """What that page is made of."""
    found = _FILES.get(file)
    if found is None:
        raise NotFoundException
    return Response(
        _read(found[0]), media_type=found[1], headers={"cache-control": "public, max-age=86400"}
    )


@cache
def _read(path: str) -> bytes:
    return files("fairbank.rest").joinpath(path).read_bytes()


ROUTES = (show_document, show_docs, show_asset)
