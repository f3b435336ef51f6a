"""How a no is put to people."""

from __future__ import annotations

from fairbank.slurm.agent.letters import Words
from fairbank.slurm.frames import shortened
from fairbank.slurm.records import Say
from fairbank.slurm.report_results import Judgement

SILENCE = "Fairbank_does_not_answer"
"""The reason that plugins/prep (courier.h) releases by itself when an agent connects."""


def words(say: Say, judgement: Judgement, account: str) -> Words:
    """A refusal as a verdict says it, with the project that it is about."""
    return Words(say, judgement.reason, shortened(f"{account or 'no account'}: {judgement.text}"))


def no_limit(say: Say) -> Words:
    """Without a finite time limit nobody knows what a run may cost."""
    return Words(
        say,
        "No_time_limit",
        "this job has no time limit, so nobody knows what it may cost. Try one: -t HH:MM:SS",
    )


def put_off(*, batch: bool) -> Words:
    """The bank is away, and this partition waits for it."""
    return Words("hold", SILENCE, f"the allocation bank cannot be asked just now; {_LATER[batch]}")


def given_up(*, batch: bool) -> Words:
    """This run is over, though it never began: only another one of its job can be let run."""
    return Words("hold", SILENCE, f"this start of the job was given up before; {_LATER[batch]}")


def beyond_cache(account: str, *, batch: bool) -> Words:
    """The bank is away, and what it last said was left is too little, or it never said."""
    text = f"the allocation bank cannot be asked just now, and {account} had too little left when it could; {_LATER[batch]}"
    return Words("hold", SILENCE, shortened(text))


def not_understood(*, batch: bool) -> Words:
    """What slurmctld's plug-in asks cannot be read, so the bank cannot be asked."""
    return Words(
        "hold",
        SILENCE,
        f"Fairbank's plug-in and agent do not understand each other; tell your operators. {_LATER[batch].capitalize()}",
    )


_LATER = {True: "the job is tried again by itself when it can", False: "try again later"}
