"""Everything that the REST server needs, in one value.

house = furnish(services(store, ...))    service/services.py makes the services
create_app(house)                        rest/app.py: the routes
serve(house, unix=..., port=...)         rest/server/serving.py: the routes on sockets, until SIGTERM
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbank.rest.metrics import Metrics
from fairbank.rest.sign_in.credentials import MungeDoor
from fairbank.rest.sign_in.munge import Munge
from fairbank.service.services import Services


@dataclass(frozen=True, kw_only=True)
class House:
    """The services behind the routes, and what the server has beside them. `name` is what MUNGE credentials must be made out to."""

    services: Services
    metrics: Metrics
    munge: MungeDoor | None
    name: str


def furnish(services: Services, *, munge: Munge | None = None, name: str = "fairbank") -> House:
    """A house around the services. Without `munge` nobody signs in by it."""
    metrics = Metrics()
    services.counter.observer = metrics.judged
    metrics.waiting.set_function(lambda: services.counter.waiting)
    door = MungeDoor(munge, services.nonces, services.clock) if munge else None
    return House(services=services, metrics=metrics, munge=door, name=name)
