"""Whether the server lives, whom it takes you for, and what it counts of itself."""

from __future__ import annotations

import pwd

from litestar import Response

from fairbank.core.errors import Forbidden
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import Health, Myself, RoleIn, Single
from fairbank.rest.metrics import CONTENT_TYPE
from fairbank.rest.verbs import opens, reads
from fairbank.rest.views import single


@opens("/health", sync_to_thread=False)
def show_health() -> Health:
    """The server answers. Says nothing of what it keeps."""
    return Health()


@reads("/whoami", opt={"scope": "none"})
def show_myself(request: Asking) -> Single[Myself]:
    """Who signed in, and with which rights."""
    asker = request.asker
    told = Myself(
        actor=asker.actor,
        uid=asker.uid,
        user=_user_name(asker.uid),
        superuser=asker.superuser,
        admin=asker.admin,
        roles=[
            RoleIn(project=project, role=role.value)
            for project, role in sorted(asker.roles.items())
        ],
        clusters=sorted(asker.clusters),
        scopes=sorted(asker.scopes),
    )
    return single("whoami", request.services.clock, told)


def _user_name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


@reads("/metrics", media_type="text/plain")
def show_metrics(request: Asking) -> Response[str]:
    """Counts and times for Prometheus, for staff."""
    if not request.asker.visibility.everything:
        raise Forbidden(
            "the server's figures are for staff", remedy="ask a superuser for a token of an admin"
        )
    return Response(request.house.metrics.page().decode(), headers={"content-type": CONTENT_TYPE})


ROUTES = (show_health, show_myself, show_metrics)
