"""Context of the REST application.

context = AppContext.create(services(store, ...))    service/services.py creates the services
create_app(context)                                  rest/app.py: the routes
serve(context, unix=..., port=...)                   rest/server/server.py: until SIGTERM
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbank.rest.auth.credentials import MungeVerifier
from fairbank.rest.auth.munge import Munge
from fairbank.rest.metrics import ServerMetrics
from fairbank.service.services import Services


@dataclass(frozen=True, kw_only=True)
class AppContext:
    """Services behind the routes, and what only the server has.

    `name` is the server's name, to which MUNGE credentials are bound.
    """

    services: Services
    metrics: ServerMetrics
    munge: MungeVerifier | None
    name: str

    @classmethod
    def create(
        cls,
        services: Services,
        *,
        munge: Munge | None = None,
        munge_plain: bool = False,
        name: str = "fairbank",
    ) -> AppContext:
        """Create the context of a server.

        Args:
            services: the services behind the routes.
            munge: libmunge; without it, MUNGE credentials are refused.
            munge_plain: credentials without a payload are accepted for any request.
        """
        metrics = ServerMetrics()
        services.write_queue.observer = metrics.count_batch
        metrics.queued.set_function(lambda: services.write_queue.waiting)
        verifier = (
            MungeVerifier(munge, services.nonces, services.clock, plain=munge_plain)
            if munge
            else None
        )
        return cls(services=services, metrics=metrics, munge=verifier, name=name)
