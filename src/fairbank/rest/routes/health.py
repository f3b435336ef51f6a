"""State of the server, the authenticated user, and the metrics."""

from __future__ import annotations

import pwd

from litestar import Response

from fairbank.core.errors import Forbidden
from fairbank.rest.metrics import CONTENT_TYPE
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import open_route, read_route
from fairbank.rest.schemas.envelope import ItemResponse, item_response
from fairbank.rest.schemas.server import Health, Myself, myself


@open_route("/health", sync_to_thread=False)
def show_health() -> Health:
    """Confirm that the server answers. The response contains no data of the bank."""
    return Health()


@read_route("/whoami", opt={"scope": "none"})
def show_myself(request: ApiRequest) -> ItemResponse[Myself]:
    """Return the authenticated user and the user's permissions."""
    identity = request.identity
    return item_response(
        "whoami", request.services.clock, myself(identity, _user_name(identity.uid))
    )


def _user_name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


@read_route("/metrics", media_type="text/plain")
def show_metrics(request: ApiRequest) -> Response[str]:
    """Return the metrics in the format of Prometheus, for staff."""
    if not request.identity.visibility.everything:
        raise Forbidden(
            "the server's metrics are for staff", remedy="ask a superuser for a token of an admin"
        )
    page = request.context.metrics.page().decode()
    return Response(page, headers={"content-type": CONTENT_TYPE})


ROUTES = (show_health, show_myself, show_metrics)
