"""Reasons that hold jobs: dependencies, times, licenses, limits."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def dependency(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N1", WHOLE, "-t30").down()
    queue.submit("after", f"-dafterok:{queue.jobs['first']}", "-N1", "-t30", priority=900)
    queue.submit("free", "-N1", WHOLE, "-t30", priority=100)


def held(queue: ScenarioQueue) -> None:
    queue.down()
    queue.submit("by-user", "--hold", "-N6", WHOLE, "-t30")
    queue.submit("by-admin", "-N6", WHOLE, "-t30").scontrol("hold", str(queue.jobs["by-admin"]))
    queue.submit("free", "-N6", WHOLE, "-t30")


def begin_time(queue: ScenarioQueue) -> None:
    queue.down()
    queue.submit("later", "--begin=now+1hour", "-N6", WHOLE, "-t30", priority=900)
    queue.submit("now", "-N6", WHOLE, "-t300", priority=100)


def too_large_for_its_partition(queue: ScenarioQueue) -> None:
    cpu = "partitionname=cpu"
    queue.scontrol(
        "update",
        cpu,
        "maxnodes=2",
        "maxtime=60",
        undo=("update", cpu, "maxnodes=unlimited", "maxtime=7-0"),
    ).down()
    queue.submit("wide", "-N3", WHOLE, "-t30", priority=900)
    queue.submit("long", "-N1", WHOLE, "-t90", priority=800)
    queue.submit("fits", "-N2", WHOLE, "-t60", priority=700)


def licenses(queue: ScenarioQueue) -> None:
    """There are two licenses. A job without a license is behind those that wait for them."""
    queue.submit_running("first", "-n1", "-Lmatlab:1", "-t30").down()
    queue.submit("both", "-N1", WHOLE, "-Lmatlab:2", "-t30", priority=900)
    queue.submit("one", "-N1", WHOLE, "-Lmatlab:1", "-t30", priority=800)
    queue.submit("another", "-n1", "-Lmatlab", "-t30", priority=700)
    queue.submit("free", "-N1", WHOLE, "-t300", priority=600)


def association_jobs(queue: ScenarioQueue) -> None:
    queue.set_limits("account", "wg_bio", grpjobs=2)
    queue.submit_running("first", "-n1", "-t30", user="carol").down()
    for number, user in enumerate(("bob", "carol", "alice", "carol")):
        queue.submit(f"job{number}", "-N1", WHOLE, "-t30", user=user, priority=900 - number)


def association_cpus(queue: ScenarioQueue) -> None:
    """Limits on the CPUs of all jobs of an association, and of one job."""
    queue.set_limits("account", "wg_bio", grptres="cpu=40")
    queue.set_limits("user", "alice", maxtresperjob="cpu=32")
    queue.submit_running("first", "-n30", "-t30", user="carol").down()
    queue.submit("twenty", "-n20", "-t30", user="bob", priority=900)
    queue.submit("ten", "-n10", "-t30", user="bob", priority=800)
    queue.submit("forty", "-n40", "-t30", priority=700)
    queue.submit("thirty", "-n30", "-t30", priority=600)


def association_nodes(queue: ScenarioQueue) -> None:
    """A node that the association already uses counts once."""
    queue.set_limits("account", "wg_bio", grptres="node=2")
    queue.submit_running("first", "-wc01", "-n1", "-t30", user="carol").down()
    queue.submit("same", "-wc01", "-n1", "-t30", user="carol", priority=900)
    queue.submit("two", "-N2", WHOLE, "-t30", user="carol", priority=800)
    queue.submit("one", "-N1", WHOLE, "-t30", user="bob", priority=700)


def association_wall(queue: ScenarioQueue) -> None:
    queue.set_limits("user", "dave", maxwall="20")
    queue.down()
    queue.submit("long", "-n1", "-t30", user="dave", priority=900)
    queue.submit("short", "-n1", "-t20", user="dave", priority=800)


def qos_jobs_of_a_user(queue: ScenarioQueue) -> None:
    queue.set_limits("qos", "low", maxjobsperuser=1)
    queue.down()
    queue.submit("one", "--qos=low", "-n1", "-t30", user="bob", priority=900)
    queue.submit("two", "--qos=low", "-n1", "-t30", user="bob", priority=800)
    queue.submit("of-carol", "--qos=low", "-n1", "-t30", user="carol", priority=700)
    queue.submit("normal", "-n1", "-t30", user="bob", priority=600)


def qos_cpus(queue: ScenarioQueue) -> None:
    queue.set_limits("qos", "high", grptres="cpu=64", maxtresperuser="cpu=48")
    queue.submit_running("first", "--qos=high", "-n20", "-t30").down()
    queue.submit("too-many", "--qos=high", "-n50", "-t30", user="bob", priority=900)
    queue.submit("mine", "--qos=high", "-n30", "-t30", priority=800)
    queue.submit("theirs", "--qos=high", "-n24", "-t30", user="bob", priority=700)
    queue.submit("last", "--qos=high", "-n4", "-t30", user="carol", priority=600)


def limit_counts_running_jobs(queue: ScenarioQueue) -> None:
    """The account may use 100 CPUs and uses ten, so 95 more exceed the limit."""
    queue.set_limits("account", "wg_bio", grptres="cpu=100")
    queue.submit_running("first", "-N5", WHOLE, "-t30").submit_running(
        "ours", "-n10", "-t30", user="bob"
    ).down()
    queue.submit("over", "-n95", "-t30", user="bob", priority=900)
    queue.submit("behind", "-n1", "-t60", priority=800)
    queue.submit("beyond", "-n64", "-t20", user="carol", priority=700)


def limit_checked_after_nodes(queue: ScenarioQueue) -> None:
    """A limit on CPUs is tested only when nodes are free: a job without nodes waits for these, and
    so do the jobs behind it.
    """
    queue.set_limits("account", "wg_bio", grptres="cpu=100")
    queue.submit_running("first", "-N5", WHOLE, "-t30").down()
    queue.submit("over", "-n120", "-t30", user="bob", priority=900)
    queue.submit("behind", "-n1", "-t60", priority=800)
