"""Jobs that were held for lack of credit are released when the bank would pay for them, where the site wants that (docs/decisions/0013)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.rest.client import Client
from fairbank.slurm.compare.held_jobs import Offer, Turns, payable
from fairbank.slurm.parsers.held_jobs import Held
from fairbank.slurm.parsers.values import ParsedRows

_log = logging.getLogger(__name__)

TROUBLES_MAX = 3
"""Troubles after which the rest of a round is left to the next: each may have cost as long as Slurm's commands may take."""


class HoldQueue(Protocol):
    """Slurm's, as far as it is needed here (slurm.commands)."""

    @property
    def cluster(self) -> str: ...

    def held(self) -> ParsedRows[Held]: ...

    def release(self, name: str) -> None: ...


class Releaser:
    """Asks a bank that shows it all projects, and a Slurm that lets it release jobs. `again`: seconds between two looks at one job."""

    def __init__(self, client: Client, slurm: HoldQueue, again: float) -> None:
        self._client, self._slurm, self._turns = client, slurm, Turns(again)
        self._trouble: FairbankError | None = None
        self._released = 0

    def look(self, now: float) -> None:
        """One round; or, once, a line in the log that says why there is none."""
        try:
            self._round(now)
        except FairbankError as trouble:
            self._failed(trouble)
        except (OSError, KeyError, TypeError, ValueError) as bad:
            self._failed(
                InvalidInput(
                    f"what was answered is not understood: {bad!r}",
                    remedy="is the bank as new as this agent?",
                )
            )
        else:
            self._trouble = None

    def _round(self, now: float) -> None:
        """Each job by itself: one that cannot be released keeps no other from its turn. Raises the first trouble when all is done."""
        offers, troubles = self._offers(self._turns.due(self._slurm.held().rows, now))
        for each in payable(offers):
            if len(troubles) >= TROUBLES_MAX:
                self._turns.give_back(each)
                continue
            try:
                self._slurm.release(each.name)
            except FairbankError as trouble:
                troubles.append(trouble)
                continue
            self._turns.released(each)
            self._released += 1
            _log.info(
                "job %s of %s is released: there is credit for it now", each.name, each.account
            )
        if troubles:
            raise troubles[0]

    def _offers(self, due: Sequence[Held]) -> tuple[list[tuple[Held, Offer]], list[FairbankError]]:
        """The bank's word of each, until it fails; who was not asked by then is due in the next round."""
        found: list[tuple[Held, Offer]] = []
        for asked, each in enumerate(due, 1):
            try:
                offer = self._offer(each)
            except FairbankError as trouble:
                for unasked in due[asked:]:
                    self._turns.give_back(unasked)
                return found, [trouble]
            if offer is not None:
                found.append((each, offer))
        return found, []

    def _offer(self, each: Held) -> Offer | None:
        """The bank's word; None for what it makes no price of."""
        job = {
            "cluster": self._slurm.cluster,
            "account": each.account,
            "partition": each.partition,
            "qos": each.qos,
        }
        try:
            said = self._client.post(
                "/quote", {**job, "tres": each.tres, "time_limit": each.limit_seconds}
            )["data"]
        except (InvalidInput, NotFound):
            return None
        return Offer(said["amount"], said["allocation"], said["available"], said["fits"])

    def _failed(self, trouble: FairbankError) -> None:
        if self._trouble is None or self._trouble.message != trouble.message:
            _log.warning(
                "jobs that can be paid now are not released: %s; try: %s",
                trouble.message,
                trouble.remedy,
            )
        self._trouble = trouble

    def status(self) -> dict[str, Any]:
        """What a person may want to know, as JSON."""
        trouble = self._trouble
        return {
            "released": self._released,
            "error": None if trouble is None else trouble.message,
            "remedy": None if trouble is None else trouble.remedy,
        }
