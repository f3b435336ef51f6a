"""Future, active and maintenance reservations: their users and their times."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def reservation_ahead(queue: ScenarioQueue) -> None:
    """Five nodes are reserved from in twenty minutes on."""
    queue.scontrol(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now+20minutes",
        "duration=60",
        "nodes=c[01-05]",
        "users=carol",
    )
    queue.down()
    queue.submit("short", "-N2", WHOLE, "-t10", priority=900)
    queue.submit("long", "-N1", WHOLE, "-t60", priority=800)
    queue.submit("long-too", "-N1", WHOLE, "-t60", priority=700)
    queue.submit("short-too", "-N1", WHOLE, "-t10", priority=600)


def reservation_running(queue: ScenarioQueue) -> None:
    """Three nodes are reserved for carol."""
    queue.scontrol(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now",
        "duration=60",
        "nodes=c[01-03]",
        "users=carol",
    ).down()
    queue.submit("others", "-N4", WHOLE, "-t30", priority=900)
    queue.submit("hers", "--reservation=course", "-N2", WHOLE, "-t30", user="carol", priority=500)
    queue.submit(
        "too-long", "--reservation=course", "-N1", WHOLE, "-t90", user="carol", priority=400
    )
    queue.submit("outside", "-N1", WHOLE, "-t30", user="carol", priority=300)


def reservation_later(queue: ScenarioQueue) -> None:
    queue.scontrol(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now+1hour",
        "duration=60",
        "nodes=c01",
        "users=carol",
    ).down()
    queue.submit("early", "--reservation=course", "-n1", "-t30", user="carol", priority=900)
    queue.submit("free", "-N6", WHOLE, "-t30", priority=100)


def maintenance(queue: ScenarioQueue) -> None:
    """All nodes of the partition are under maintenance in half an hour."""
    when = ("starttime=now+30minutes", "duration=60")
    queue.scontrol(
        "create",
        "reservation",
        "reservationname=works",
        *when,
        "nodes=c[01-06]",
        "users=root",
        "flags=maint",
    ).down()
    queue.submit("long", "-N1", WHOLE, "-t60", priority=900)
    queue.submit("short", "-N1", WHOLE, "-t20", priority=800)
