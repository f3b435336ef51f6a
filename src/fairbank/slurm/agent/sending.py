"""A sender: one request to the bank with what waits, and what it answers. It blocks; the agent has a few of them in threads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.bodies.answers import ReportAnswer
from fairbank.rest.client import Client
from fairbank.slurm.agent.letters import Letter, bulk
from fairbank.slurm.report_results import Judgement, cannot_ask, judged, no_bank


def send(client: Client, letters: Sequence[Letter]) -> list[Judgement] | FairbankError:
    """The bank's answer to each letter, or why there is none."""
    try:
        return read_answers(client.post("/job/bulk", bulk(list(letters))).get("data"), len(letters))
    except FairbankError as trouble:
        return trouble
    except OSError as error:
        return cannot_ask(error)


def read_answers(rows: object, expected: int) -> list[Judgement]:
    """Raises Unavailable when these are not so many answers to reports."""
    try:
        found = msgspec.convert(rows, list[ReportAnswer])
    except msgspec.ValidationError as bad:
        raise no_bank(bad) from bad
    if len(found) != expected:
        raise Unavailable(
            f"the bank answered {len(found)} of {expected} reports",
            field="bank.server",
            remedy="trying again",
        )
    return [judged(each) for each in found]
