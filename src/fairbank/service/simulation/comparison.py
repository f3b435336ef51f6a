"""A workload under several policies, one after the other: each reads it again, and of a job only its start is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.os_errors import translate_os_error
from fairbank.service.ops.atomic_file import atomic_write, check_writable
from fairbank.service.simulation.trace_files import Reader, open_skimmed
from fairbank.simulator.engine.policies import SimulationPolicy, policy_named
from fairbank.simulator.engine.simulation import (
    TICK,
    SimulationPlan,
    SimulationResult,
    Tick,
    check_bank,
    simulate,
)
from fairbank.simulator.results.delivered_shares import Sought, numbered, read_holdings
from fairbank.simulator.traces.fast_reader import FastTrace, read_fast
from fairbank.simulator.traces.user_numbers import UserNumbers
from fairbank.simulator.traces.workload import TraceJob, Workload, size_of

if TYPE_CHECKING:
    from fairbank.simulator.engine.grants import Budget
    from fairbank.simulator.engine.share_accounts import ShareAccounts

Progress = Callable[[str, int, int], None]
"""Called with the policy, how many jobs are read, and of how many: as many as there are if the rest of the file is like the first part."""


class Extent(NamedTuple):
    """How much there is to read: `about` tells, when so many jobs are read, how many there are. `once`: it cannot be read again."""

    about: Callable[[int], int]
    once: bool = False


LISTED = 5
"""So many accounts that a trace does not have are named."""

Source = Callable[[], AbstractContextManager[tuple[FastTrace, Extent]]]
"""Opens a workload, from its beginning each time."""


@contextmanager
def in_file(path: Path, reader: Reader = read_fast) -> Iterator[tuple[FastTrace, Extent]]:
    """A workload in a file. Raises NotFound when it cannot be opened."""
    with open_skimmed(path, reader) as (trace, file):
        yield trace, Extent(lambda jobs: jobs * file.size // max(file.position(), 1), file.once)


def simulate_each(
    source: Source,
    names: Sequence[str],
    plan: SimulationPlan,
    *,
    holdings: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> list[SimulationResult]:
    """What comes of each policy; `holdings` are the shares of the plan, by names or numbers. With a `budget` the bank grants it beforehand,
    and its payers have shares as they have credit, where nobody says other ones. Raises NotFound for a file or a policy that is not there,
    and InvalidInput as `simulate` does."""
    policies = policies_of(names)
    for policy in policies:
        check_bank(policy, there=budget is not None)
    if budget is not None:
        plan = granted(source, plan, budget, holdings, progress)
    outcomes = []
    for policy in policies:
        with source() as (trace, extent):
            if extent.once and len(policies) > 1:
                raise InvalidInput(
                    "a pipe can be read only once",
                    field="FILE",
                    remedy="name one --policy, or a file rather than a pipe",
                )
            tick = progress and ticking(policy.name, extent, progress)
            outcomes.append(simulated(trace, policy, plan, holdings, tick))
            check_shares(outcomes[-1], holdings)
    return outcomes


def simulated(
    trace: FastTrace,
    policy: SimulationPolicy,
    plan: SimulationPlan,
    holdings: Mapping[str, int] | None,
    tick: Tick | None,
) -> SimulationResult:
    """What comes of one policy, accounts by their names. Where it has fair share the shares count in it. Raises as `simulate` does."""
    if not holdings:
        return _called(simulate(trace, policy, plan, tick), trace, plan)
    shares = _shares(trace, plan, holdings)
    if policy.entitling is not None:
        policy = policy.entitling(_entitled(shares, plan))._replace(remarks=policy.remarks)
    sought = Sought(holdings, shares, unknown=-1 if plan.grants is None else 0)
    trace, plan = (
        trace._replace(jobs=sought.among(trace.jobs, by_group=plan.by_group)),
        plan._replace(shares=shares),
    )
    return _called(simulate(trace, policy, plan, tick), trace, plan)._replace(
        strangers=sought.missing()
    )


def _entitled(shares: Mapping[int, int], plan: SimulationPlan) -> ShareAccounts:
    """Raises InvalidInput for shares that Slurm would not take."""
    from fairbank.simulator.engine.share_accounts import ShareAccounts  # noqa: PLC0415  only a policy with fair share pays for NumPy

    entitled = ShareAccounts(shares, plan.by_group)
    entitled.check()
    return entitled


def check_shares(outcome: SimulationResult, holdings: Mapping[str, int] | None) -> None:
    """Raises InvalidInput for shares of accounts of which the trace has none."""
    if holdings and outcome.lines and len(outcome.strangers) == len(holdings):
        several = ", ".join(outcome.strangers[:LISTED]) + (
            ", ..." if len(holdings) > LISTED else ""
        )
        remedy = "name accounts as the trace does; --by tells whether they are users or groups"
        raise InvalidInput(
            f"no account of the shares is in this trace: {several}", field="shares", remedy=remedy
        )


def _shares(trace: FastTrace, plan: SimulationPlan, holdings: Mapping[str, int]) -> dict[int, int]:
    """By the numbers of the trace. Whoever they belong to, users and groups both get to know the names: so numbers are the same however
    often a trace is read, and whosever the shares are then."""
    people = trace.people
    by_user = numbered(holdings, people and people.users)
    by_group = numbered(holdings, people and people.groups)
    return by_group if plan.by_group else by_user


def granted(
    source: Source,
    plan: SimulationPlan,
    budget: Budget,
    holdings: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> SimulationPlan:
    """The plan with what is granted: the trace is read for it once more."""
    from fairbank.simulator.engine.bank_replay import Payer  # noqa: PLC0415
    from fairbank.simulator.engine.grants import grants_of, holdings_of  # noqa: PLC0415  only who grants credit pays for the bank

    with source() as (trace, extent):
        if extent.once:
            raise InvalidInput(
                "a pipe can be read only once, and grants are a part of what is used",
                field="FILE",
                remedy="name a file",
            )
        if holdings:
            _shares(trace, plan, holdings)
        jobs = Workload(trace.jobs, size_of(trace, plan.processors))
        grants = grants_of(
            budget, _told(jobs, progress and ticking("grants", extent, progress)), trace.header
        )
    return plan._replace(
        grants=grants, shares=holdings_of(grants) or None, by_group=grants.payer is Payer.GROUP
    )


def _told(jobs: Workload, tick: Tick | None) -> Iterator[TraceJob]:
    for job in jobs:
        if tick is not None and job.number % TICK == 0:
            tick(jobs.lines)
        yield job


def policies_of(names: Sequence[str]) -> list[SimulationPolicy]:
    """Each by its name, or as a file describes it. Raises NotFound for one that is not there, InvalidInput for a file that cannot be, and for
    two policies of one name."""
    policies = [_policy_of(name) for name in names]
    for number, each in enumerate(policies):
        if any(each.name == other.name for other in policies[:number]):
            remedy = "name the files differently: a policy is called as its file is, without .toml"
            raise InvalidInput(
                f"two policies are called {each.name!r}", field="policy", remedy=remedy
            )
    return policies


def _policy_of(name: str) -> SimulationPolicy:
    if not name.endswith(".toml"):
        return policy_named(name)
    from fairbank.service.simulation.policy_files import read_policy  # noqa: PLC0415  only who names a file pays for TOML and NumPy

    return read_policy(Path(name))


def _accounts(trace: FastTrace, plan: SimulationPlan) -> UserNumbers | None:
    """The names of those who have shares."""
    if trace.people is None:
        return None
    return trace.people.groups if plan.by_group else trace.people.users


def _called(outcome: SimulationResult, trace: FastTrace, plan: SimulationPlan) -> SimulationResult:
    """With accounts by their names."""
    if (accounts := _accounts(trace, plan)) is None:
        return outcome
    delivered = [
        each._replace(account=accounts.name(int(each.account))) for each in outcome.delivered
    ]
    credit = outcome.credit
    if credit is not None:
        credit = credit._replace(
            accounts=[
                each._replace(account=accounts.name(int(each.account))) for each in credit.accounts
            ]
        )
    return outcome._replace(delivered=delivered, credit=credit)


def ticking(name: str, extent: Extent, progress: Progress) -> Tick:
    """Tells how far a stage has come."""

    def tick(jobs: int) -> None:
        progress(name, jobs, extent.about(jobs))

    return tick


def check_starts(path: Path, trace: Path | None) -> None:
    """Before the work begins. Raises InvalidInput for the trace itself, and what `of_system` makes of where nothing can be
    written."""
    if trace is not None and path.exists() and trace.exists() and path.samefile(trace):
        raise InvalidInput(
            f"{path} is the trace itself", field="starts", remedy="name another file"
        )
    try:
        check_writable(path)
    except OSError as error:
        raise translate_os_error(error, f"cannot write {path}", field="starts") from error


def write_starts(lines: Iterable[str], path: Path) -> None:
    """Whole or not at all. Raises what `of_system` makes of it where the file cannot be written."""
    try:
        with atomic_write(path) as file:
            file.writelines(map(str.encode, lines))
    except BrokenPipeError:
        pass  # whoever reads them has seen enough
    except OSError as error:
        raise translate_os_error(error, f"cannot write {path}", field="starts") from error


def read_shares(path: Path) -> Mapping[str, int]:
    """Raises NotFound where the file cannot be read, InvalidInput with the line for what cannot
    be.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}",
            field="shares",
            remedy="name a file of lines: account,shares",
        ) from error
    except UnicodeDecodeError as strange:
        what = f"cannot read {path}: byte 0x{strange.object[strange.start]:02x} at place {strange.start + 1} is no UTF-8"
        raise InvalidInput(
            what, field="shares", remedy="save it as text in UTF-8, with lines: account,shares"
        ) from strange
    return read_holdings(text.splitlines())
