"""What sshare and sprio must say, reckoned by Fairbank from the state that a real Slurm started from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairbank.priority.billing import STATIC
from fairbank.priority.classic import classic
from fairbank.priority.fairtree import fair_tree
from fairbank.priority.multifactor.composing import weighted
from fairbank.priority.multifactor.pending import Scale, pending, scale
from fairbank.priority.settings import Algorithm
from fairbank.priority.standing import Ranking, Standings
from fairbank.priority.tree import PARENT, Association, Tree, planted
from fairbank.priority.usage import Usage
from fairbank.priority.usage import minutes as whole_minutes
from fairbank.report.priorities import PriorityRow, Weights
from fairbank.report.shares import ShareRow
from fairbank.slurm.answers.priority import TRES as WEIGHED_TRES
from fairbank.slurm.answers.priority import read_settings
from fairbank.slurm.answers.scontrol import read_config
from fairbank.slurm.ranking.jobs import weights_of
from fairbank.values.tres import parse_counts
from tests.slurm.forest import Wish
from tests.slurm.frozen import Row, Said, Start, instant, minutes, own_usage
from tests.slurm.recounted import NAMES, at_tick

NODES, CPUS = 10, 6 * 64 + 2 * 48 + 2 * 64
TRES = ("cpu", "mem", "node", "gres/gpu")
"""Those that jobs of the proof have, in Slurm's order."""

Key = tuple[str, str, str]


def reckoned(there: Said, start: Start) -> tuple[Tree, Standings, Usage]:
    """The tree, the figures of each row, and their usage: of what slurmctld read and of the jobs that run, at its tick."""
    rule = read_settings(read_config(there.config)).fair_share
    tree = planted([_association(row) for row in there.associations])
    usage = at_tick(own_usage(there, start), start.counted_at, there, tree)
    if rule.algorithm is Algorithm.FAIR_TREE:
        return tree, fair_tree(tree, usage.raw), usage
    oblivious = rule.algorithm is Algorithm.DEPTH_OBLIVIOUS
    return tree, classic(tree, usage.raw, dampening=rule.dampening, depth_oblivious=oblivious), usage


def _association(row: Row) -> Association:
    shares = PARENT if row["Share"] == "parent" else int(row["Share"])
    return Association(row["Account"], row["User"], row["Partition"], "" if row["User"] else row["ParentName"], shares)


# ---------------------------------------------------------------- sshare


def standings(there: Said, tree: Tree, figures: Standings, usage: Usage) -> list[ShareRow]:
    running = whole_minutes(usage.run_seconds)
    told = [",".join(f"{name}={count}" for name, count in zip(NAMES, row, strict=True)) for row in running]
    return [_standing(tree, figures, at, row, told[at]) for at, row in enumerate(there.associations)]


def _standing(tree: Tree, figures: Standings, at: int, row: Row, running: str) -> ShareRow:
    association, root, ranked = tree.rows[at], at == tree.root, isinstance(figures, Ranking)
    on_parent = association.shares == PARENT
    level = float(figures.level[at]) if isinstance(figures, Ranking) and not (root or on_parent) else None
    return ShareRow(
        account=association.account,
        user=association.user,
        partition=association.partition,
        parent=association.parent,
        shares=None if root else association.shares,
        norm_shares=float(figures.norm_shares[at]),
        usage=float(np.floor(figures.usage[at])),
        norm_usage=None if root else float(figures.norm_usage[at]),
        effective=float(figures.effective_usage[at]),
        factor=float(figures.factor[at]) if association.user or not ranked else None,
        level=level,
        limits=_in_slurms_order(row["GrpTRESMins"]),
        running=running,
        cluster="lab",
        number=int(row["ID"]),
    )


def _in_slurms_order(limits: str) -> str:
    """sacctmgr tells them as somebody wrote them down."""
    return ",".join(sorted(filter(None, limits.split(",")), key=lambda each: STATIC.index(each.partition("=")[0])))


# ---------------------------------------------------------------- sprio


def weights(there: Said) -> Weights:
    config = read_config(there.config)
    return weights_of(read_settings(config).factors.weights, config[WEIGHED_TRES])


def queue(there: Said, tree: Tree, figures: Standings, wishes: Mapping[int, Wish]) -> list[PriorityRow]:
    """The rows of sprio: of the jobs that are neither held nor to begin later, each in each of its partitions."""
    pairs = [(job, place) for job in sorted(there.jobs, key=_number) if _is_listed(job) for place in job["Partition"].split(",")]
    factor = {row[:3]: float(figures.factor[at]) for at, row in enumerate(tree.rows)}
    own = {(row["Account"], row["User"], row["Partition"]): int(row["Priority"] or 0) for row in there.associations}
    keys = [_key(job, place, factor) for job, place in pairs]
    places, qualities = [each["PartitionName"] for each in there.partitions], list(there.qualities)
    counts = [parse_counts(_counted(job["TRES"])) for job, _ in pairs]
    to = _scale(there, max(own.values()))
    jobs = pending(
        to,
        len(pairs),
        accrued_at=[instant(_since(job, there)) for job, _ in pairs],
        association=[own[key] for key in keys],
        fairshare=[factor[key] for key in keys],
        nodes=[int(job["NumNodes"].partition("-")[0]) for job, _ in pairs],
        cpus=[int(job["NumCPUs"].partition("-")[0]) for job, _ in pairs],
        limit_minutes=[minutes(job["TimeLimit"]) for job, _ in pairs],
        nice=[int(job["Nice"]) for job, _ in pairs],
        site=[wishes[_number(job)].site for job, _ in pairs],
        partition=[places.index(place) for _, place in pairs],
        qos=[qualities.index(job["QOS"]) for job, _ in pairs],
        tres={name: [float(each.get(name, 0)) for each in counts] for name in TRES},
    )
    terms = weighted(jobs, to, read_settings(read_config(there.config)).factors, there.counted_at)
    return [
        _given(job, place, direct)
        if (direct := wishes[_number(job)].given) is not None
        else PriorityRow(
            job=_number(job),
            partition_name=place,
            user=_user(job),
            age=float(terms.age[at]),
            association=float(terms.association[at]),
            fair_share=float(terms.fairshare[at]),
            job_size=float(terms.job_size[at]),
            partition=float(terms.partition[at]),
            qos=float(terms.qos[at]),
            tres={name: float(column[at]) for name, column in zip(to.tres, terms.tres, strict=True) if column[at]},
            site=wishes[_number(job)].site,
            nice=int(job["Nice"]),
        )
        for at, (job, place) in enumerate(pairs)
    ]


def _given(job: Row, place: str, direct: int) -> PriorityRow:
    return PriorityRow(job=_number(job), partition_name=place, user=_user(job), direct=direct)


def _scale(there: Said, highest: int) -> Scale:
    totals = [parse_counts(_counted(each["TRES"])) for each in there.partitions]
    return scale(
        nodes=NODES,
        cpus=CPUS,
        partition_factors=[int(each["PriorityJobFactor"]) for each in there.partitions],
        qos_priorities=list(there.qualities.values()),
        association_max=highest,
        totals={name: [float(each.get(name, 0)) for each in totals] for name in TRES},
    )


def _is_listed(job: Row) -> bool:
    return job["Priority"] != "0" and job["Reason"] != "BeginTime"


def _since(job: Row, there: Said) -> str:
    always = "ACCRUE_ALWAYS" in read_config(there.config)["PriorityFlags"]
    return job["SubmitTime"] if always and job["AccrueTime"] != "Unknown" else job["AccrueTime"]


def _key(job: Row, place: str, known: Mapping[Key, float]) -> Key:
    """The association that pays: the partition's own, where there is one."""
    account, user = job["Account"], _user(job)
    return (account, user, place) if (account, user, place) in known else (account, user, "")


def _user(job: Row) -> str:
    return job["UserId"].partition("(")[0]


def _number(job: Row) -> int:
    return int(job["JobId"])


def _counted(text: str) -> str:
    """Without billing, which is no amount."""
    return ",".join(part for part in text.split(",") if not part.startswith("billing="))
