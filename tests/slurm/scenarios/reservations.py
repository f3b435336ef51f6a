"""Future, active and maintenance reservations: their users and their times."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, Queue


def reservation_ahead(queue: Queue) -> None:
    """Five nodes are reserved from in twenty minutes on."""
    queue.tell(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now+20minutes",
        "duration=60",
        "nodes=c[01-05]",
        "users=carol",
    )
    queue.down()
    queue.waits("short", "-N2", WHOLE, "-t10", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t60", priority=800)
    queue.waits("long-too", "-N1", WHOLE, "-t60", priority=700)
    queue.waits("short-too", "-N1", WHOLE, "-t10", priority=600)


def reservation_running(queue: Queue) -> None:
    """Three nodes are reserved for carol."""
    queue.tell(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now",
        "duration=60",
        "nodes=c[01-03]",
        "users=carol",
    ).down()
    queue.waits("others", "-N4", WHOLE, "-t30", priority=900)
    queue.waits("hers", "--reservation=course", "-N2", WHOLE, "-t30", user="carol", priority=500)
    queue.waits(
        "too-long", "--reservation=course", "-N1", WHOLE, "-t90", user="carol", priority=400
    )
    queue.waits("outside", "-N1", WHOLE, "-t30", user="carol", priority=300)


def reservation_to_come(queue: Queue) -> None:
    queue.tell(
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now+1hour",
        "duration=60",
        "nodes=c01",
        "users=carol",
    ).down()
    queue.waits("early", "--reservation=course", "-n1", "-t30", user="carol", priority=900)
    queue.waits("free", "-N6", WHOLE, "-t30", priority=100)


def maintenance(queue: Queue) -> None:
    """All nodes of the partition are under maintenance in half an hour."""
    when = ("starttime=now+30minutes", "duration=60")
    queue.tell(
        "create",
        "reservation",
        "reservationname=works",
        *when,
        "nodes=c[01-06]",
        "users=root",
        "flags=maint",
    ).down()
    queue.waits("long", "-N1", WHOLE, "-t60", priority=900)
    queue.waits("short", "-N1", WHOLE, "-t20", priority=800)
