"""Fields of scontrol for nodes, partitions and reservations become requests of the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairbank.cluster.node import WEIGHT_MAX
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.core import ids
from fairbank.core.errors import Conflict, InvalidInput
from fairbank.core.hostlist import compress, expand
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.core.submission import values as v
from fairbank.core.time import Instant, parse_moment
from fairbank.scheduling.placement import constraint
from fairbank.wlm.config.entries import slurm_conf_keywords
from fairbank.wlm.config.keyword import PARTITIONS, KeywordEffect
from fairbank.wlm.controller.commands.field_names import find_field, required
from fairbank.wlm.controller.commands.machine_lines import RESERVATION_FLAGS
from fairbank.wlm.controller.commands.submissions import check_licenses
from fairbank.wlm.core.events import UpdateNode, UpdatePartition
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.node_states import NodeEvent
from fairbank.wlm.core.requests.known_names import check_known, unknown
from fairbank.wlm.core.snapshot import remaining_seconds
from fairbank.wlm.core.state import CoreState

_NODE_EVENTS = {
    "DOWN": NodeEvent.DOWN,
    "DRAIN": NodeEvent.DRAINED,
    "FAIL": NodeEvent.FAILED,
    "FUTURE": NodeEvent.FUTURE,
    "IDLE": NodeEvent.RESUMED,
    "RESUME": NodeEvent.RESUMED,
    "UNDRAIN": NodeEvent.RESUMED,
}
_NODE_FIELDS = {
    "State": "event",
    "Reason": "reason",
    "Weight": "weight",
    "ActiveFeatures": "features",
    "AvailableFeatures": "features",
    "Comment": "comment",
    "Extra": "extra",
    **dict.fromkeys(("CPUs", "Gres", "RealMemory"), ""),  # of the settings
}


def node_updates(state: CoreState, nodes: str, fields: Mapping[str, str]) -> list[UpdateNode]:
    """Return the requests for the nodes of a host list, or ALL.

    Raises FairbankError if a node is unknown, or a field cannot change.
    """
    names = [*state.configured] if nodes.upper() == "ALL" else expand(nodes, field="nodes")
    for name in names:
        check_known("node", name, state.nodes)
    texts = {find_field(name, _NODE_FIELDS): (name, text) for name, text in fields.items()}
    if "" in texts:
        raise InvalidInput(
            f"{texts[''][0]} comes from the settings",
            field=texts[""][0],
            remedy="change wlm.toml, then: scontrol reconfigure",
        )
    values: dict[str, Any] = {field: text for field, (_, text) in texts.items()}
    if not values.keys() - {"reason"} and not values.get("reason"):
        raise InvalidInput("State is missing", field="State", remedy="State=DRAIN Reason=...")
    if "event" in values:
        values["event"] = find_field(values["event"], _NODE_EVENTS, "a state to set")
    if "weight" in values:
        values["weight"] = _weight(*texts["weight"])
    if "features" in values:
        values["features"] = frozenset(filter(None, values["features"].split(",")))
    return [UpdateNode(name, **values) for name in names]


def _weight(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text[:20]) > WEIGHT_MAX:
        raise InvalidInput(
            f"{text[:40]!a} is not a weight", field=name, remedy=f"a number from 0 to {WEIGHT_MAX}"
        )
    return int(text)


# --- partitions ---


def partition_update(
    state: CoreState, fields: Mapping[str, str], *, is_new: bool
) -> UpdatePartition:
    """Return the request that creates or changes a partition, from keywords of slurm.conf.

    Raises FairbankError if it exists already or does not, or a field has a bad value.
    """
    values = _partition_values(fields)
    name = required(values.pop("name", ""), "PartitionName", "NAME")
    rules = state.partitions.get(name)
    if rules is None and not is_new:
        raise unknown("partition", name)
    if rules is not None and is_new:
        raise Conflict(
            f"there is a partition {name}", field="PartitionName", remedy="choose another name"
        )
    if rules is None:
        return UpdatePartition(PartitionRules(name=name, **values))
    return UpdatePartition(msgspec.structs.replace(rules, **values))


def _partition_values(fields: Mapping[str, str]) -> dict[str, Any]:
    known = {keyword.name: keyword for keyword in slurm_conf_keywords(PARTITIONS).values()}
    values: dict[str, Any] = {}
    for written, text in fields.items():
        keyword = find_field(written, known)
        if keyword.form is None or keyword.effect is not KeywordEffect.YES:
            raise InvalidInput(
                f"{keyword.name} has no effect: {keyword.note}",
                field=written,
                remedy="leave it out",
            )
        try:
            value = keyword.form.read(text, written)
        except InvalidInput as bad:
            raise InvalidInput(bad.message, field=written, remedy=keyword.form.words) from bad
        several = value if len(keyword.targets) > 1 else (value,)
        values.update(zip(keyword.targets, several, strict=True))
    return values


# --- reservations ---

RESERVATION_FIELDS = {
    name: name.lower()
    for name in (
        "ReservationName Nodes NodeCnt PartitionName StartTime EndTime Duration Users Accounts"
        " Groups Features Licenses Flags"
    ).split()
}


def entity_name(entity: str, fields: Mapping[str, str]) -> str:
    """Return the name of the partition or reservation that is deleted. Raises InvalidInput."""
    known = {f"{entity.title()}Name": "name", entity.title(): "name"}
    texts = {find_field(name, known): text for name, text in fields.items()}
    return required(texts.get("name", ""), f"{entity.title()}Name", "NAME")


def changed_reservation(
    state: CoreState, fields: Mapping[str, str], *, is_new: bool, user: str, now: Moment
) -> Reservation:
    """Return the reservation that is created, or one that is changed.

    One that is created without a name is named after the user. Raises FairbankError if a field has
    a bad value, or its nodes are not free.
    """
    texts = {find_field(name, RESERVATION_FIELDS): text for name, text in fields.items()}
    name = texts.pop("reservationname", "") or (_free_name(state, user) if is_new else "")
    before = state.reservations.get(required(name, "ReservationName", "NAME"))
    if before is None and not is_new:
        raise unknown("reservation", name)
    if before is not None and is_new:
        raise Conflict(
            f"there is a reservation {name}", field="ReservationName", remedy="choose another name"
        )
    if before is None:
        ids.name(name, field="ReservationName")
    values: dict[str, Any] = {} if before is None else msgspec.structs.asdict(before)
    values |= {"name": name, **_reservation_values(texts, state)}
    values |= _period(texts, values, state, now.wall)
    if not (values.get("users") or values.get("accounts") or values.get("groups")):
        raise InvalidInput(
            "it is not said who may use the reservation", field="Users", remedy="add Users=..."
        )
    if "nodes" in texts or "nodecnt" in texts or "nodes" not in values:
        values["nodes"] = ("",)  # a reservation without nodes is none
        values["nodes"] = _chosen_nodes(state, texts, Reservation(**values), now)
    made = Reservation(**values)
    _check_free(state, made, now)
    return made


def _reservation_values(texts: Mapping[str, str], state: CoreState) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: frozenset(filter(None, texts[name].split(",")))
        for name in ("users", "accounts", "groups")
        if name in texts
    }
    if "features" in texts:
        constraint.parse(texts["features"], "Features")
        values["features"] = texts["features"]
    if "licenses" in texts:
        counts = v.licenses(texts["licenses"], "Licenses") if texts["licenses"] else {}
        check_licenses(counts, state, "Licenses")
        values["licenses"] = counts
    if "partitionname" in texts:
        if texts["partitionname"] not in state.partitions:
            raise unknown("partition", texts["partitionname"])
        values["partition"] = texts["partitionname"]
    if "flags" in texts:
        words = [word for word in texts["flags"].upper().split(",") if word]
        chosen = {find_field(word, RESERVATION_FLAGS, "a flag") for word in words}
        values |= {field: field in chosen for field in RESERVATION_FLAGS.values()}
    return values


def _period(
    texts: Mapping[str, str], before: Mapping[str, Any], state: CoreState, now: int
) -> dict[str, Any]:
    """Return begin and end."""
    times = {
        name: parse_moment(texts[name], now, state.settings.zone, field=name)
        for name in ("starttime", "endtime")
        if name in texts
    }
    begin = times.get("starttime", before.get("begin", now))
    if "duration" in texts:
        seconds = v.time_limit(texts["duration"], "Duration") or UNLIMITED_SECONDS
        return {"begin": begin, "end": Instant(begin + seconds)}
    end = times.get("endtime", before.get("end"))
    if end is None:
        raise InvalidInput(
            "EndTime and Duration are missing", field="EndTime", remedy="add Duration=1:00:00"
        )
    if end <= begin:
        raise InvalidInput(
            "the reservation ends before it begins", field="EndTime", remedy="name a later EndTime"
        )
    return {"begin": begin, "end": end}


def _free_name(state: CoreState, user: str) -> str:
    number = 1
    while f"{user}_{number}" in state.reservations:
        number += 1
    return f"{user}_{number}"


def _chosen_nodes(
    state: CoreState, texts: Mapping[str, str], made: Reservation, now: Moment
) -> tuple[str, ...]:
    """Return the nodes that are named, or as many free ones as are asked for."""
    text = texts.get("nodes", "")
    candidates = [*state.configured]
    if made.partition:
        candidates = [node.name for node in state.nodes_in(state.partitions[made.partition])]
    if text.upper() == "ALL":
        return tuple(candidates)
    if text:
        return tuple(dict.fromkeys(expand(text, field="Nodes")))
    if "nodecnt" not in texts:
        raise InvalidInput("no nodes are named", field="Nodes", remedy="add Nodes=... or NodeCnt=1")
    count = v.count(texts["nodecnt"], "NodeCnt")
    features = set(filter(None, made.features.replace("&", ",").split(",")))
    busy = _busy_nodes(state, made, now)
    free = [
        name
        for name in candidates
        if name not in busy and features <= state.configured[name].features
    ]
    if len(free) < count:
        raise _not_free(f"only {len(free)} nodes are free then")
    return tuple(free[:count])


def _check_free(state: CoreState, made: Reservation, now: Moment) -> None:
    busy = sorted(_busy_nodes(state, made, now).intersection(made.nodes))
    if busy:
        raise _not_free(f"{compress(busy)[:100]} is not free then")


def _not_free(what: str) -> Conflict:
    return Conflict(what, field="Nodes", remedy="another time, or Flags=IGNORE_JOBS or OVERLAP")


def _busy_nodes(state: CoreState, made: Reservation, now: Moment) -> set[str]:
    """Return the nodes that other reservations or running jobs have in its period."""
    busy = set[str]()
    if not (made.overlapping or made.maintenance):
        for other in state.reservations.values():
            if other.name != made.name and other.begin < made.end and made.begin < other.end:
                busy.update(other.nodes)
    if not made.ignores_jobs:
        busy.update(_nodes_of_jobs(state, made, now))
    return busy


def _nodes_of_jobs(state: CoreState, made: Reservation, now: Moment) -> Iterable[str]:
    for job in state.jobs.values():
        run = job.active_run
        if run is None or job.request.reservation == made.name:
            continue
        if now.wall + remaining_seconds(job, run, now) > made.begin:
            yield from run.allocation.nodes
