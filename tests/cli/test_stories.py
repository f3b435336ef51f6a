"""Stories of what people ask a bank: how much is left, who used what, why a job was refused.

Each story is typed into a terminal of 80 columns, and its JSON has the same values in SU-minutes.
Below a command stand parts of its output in their order, and its exit code if it is not 0. Lines
with `#` work out the values: on cluster lab a CPU or 2 GiB cost 1 SU an hour, and so does a GPU.

The story of Slurm's releases has recorded answers of Slurm. That the plug-ins load and charge jobs
needs a real Slurm: `make test-slurm` shows it, and docs/howto/install-next-to-slurm.md lists the
tested releases.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.time import parse_instant
from fairbank.rest.client import Client, parse_address
from tests.cli.test_queue import whole_queue
from tests.support.fairshare_recordings import printed
from tests.support.golden import GOLDEN
from tests.support.json_contract import check_json
from tests.support.json_schemas import check_schema
from tests.support.recorded_slurm import RecordedSlurm
from tests.support.server import FairbankServer, create_bank
from tests.support.sessions import blocks, paste

HOUR = 3_600
CHECKOUT = Path(__file__).parents[2]
PROJECTS = ("story_a", "story_b", "story_c", "wg_astro", "story_e", "story_f", "story_g", "story_h")
SETTINGS = """
[policy.categories.research]
[policy.categories.starter]
resources.cpu = { lowest = 10, highest = 500 }
longest_days = 93
"""
CLUSTER = """
capacity = { cpu = 10, gpu = 2 }
qos_factors = { normal = 1, standby = 0, low = 0.5 }
qos_resources = { debug = "debug" }
"""


@pytest.fixture(scope="module")
def site() -> Iterator[FairbankServer]:
    """Serve a bank on SQLite. Each story has a project of its own, with one member."""
    with create_bank() as bank:
        settings = bank.config.read_text().replace("clusters.local", "clusters.lab")
        settings = settings.replace("[clusters.lab]\n", f"[clusters.lab]\n{CLUSTER}\n")
        bank.config.write_text(settings + SETTINGS)
        bank.start()
        client = client_of(bank)
        for number, gname in enumerate(PROJECTS, 1):
            client.post("/project", {"gname": gname, "gid": 7_000 + number})
            client.put(f"/project/{number}/member/{61_000 + number}", {"role": "member"})
        yield bank


def client_of(bank: FairbankServer) -> Client:
    return Client(parse_address(f"unix:{bank.socket}"))


def tell(story: str, bank: FairbankServer, folder: Path) -> None:
    """Type the commands of a story, and compare what it shows of their output."""
    lines = [line for line in story.splitlines(keepends=True) if not line.startswith("# ")]
    places = f"export FAIRBANK_SERVER=unix:{bank.socket} CONFIG={bank.config}\n"
    (commands,) = blocks(f"```console\n$ {places}{''.join(lines).lstrip()}```")
    results = paste(commands, folder)
    assert len(results) == len(commands), results[-1]
    for command, result in zip(commands, results, strict=True):
        expected, _, code = command.output.partition("--- exit ")
        assert result.status == int(code or 0), (command.words, result)
        left = words(result.output)
        for line in map(words, expected.splitlines()):
            at = place(line, left)
            assert at is not None, (command.words, line, result.output)
            left = left[at:]


def words(text: str) -> list[str]:
    """Return whole words and figures, without the mark that follows one in a sentence."""
    return [word.rstrip(".,;:") for word in text.split()]


def place(line: list[str], shown: list[str]) -> int | None:
    """Return where the first run of these words ends in an output, or None."""
    ends = range(len(line), len(shown) + 1)
    return next((end for end in ends if shown[end - len(line) : end] == line), None)


def document(file: Path) -> Any:
    """Return what a command wrote as JSON."""
    value = json.loads(file.read_text())
    check_json(value)
    if "schema" in value:
        check_schema(value)
    return value


def amounts(row: dict[str, Any], names: str) -> list[tuple[int, str]]:
    """Return amounts in SU-minutes, with the texts for people."""
    return [(row[name], row["display"][name]) for name in names.split()]


# --- A: how much is left for me ---

LEFT = """
$ fairbank alloc create -A story_a -r cpu --end now+1year --amount 100 --reason 'call 1'
active, 100 SU remaining
$ fairbank alloc cap -A story_a -r cpu 61001 20
# 4 CPUs for at most 2 h hold 4 x 2 = 8 of 100 SU: 92 remain. The cap of 20 leaves 20 - 8 = 12.
$ fairbank hold 101 -A story_a -p cpu -t 2:00:00 --tres cpu=4 -u 61001
hold of 8 SU for job 101 of cluster lab
remaining 92 SU
$ fairbank balance --as 61001
PROJECT RESOURCE GRANTED USED HELD MY-CAP MY-LEFT AVAILABLE
story_a cpu 100 0 8 20 12 12
story_a/cpu: 92 SU remain, but your cap is 20: you used 0 and hold 8, 12 left
$ fairbank balance --as 61001 --threshold 13 --json > left.json
--- exit 5
# 4 hours would hold 16 SU, so 16 - 12 = 4 are missing; 12 SU are enough for 12 / 4 = 3 hours.
$ fairbank hold 102 -A story_a -p cpu -t 4:00:00 --tres cpu=4 -u 61001
requested 16 SU, available 12 SU, short by 4 SU.
Of the cap of 20 SU 0 are used, 8 held by 1 running job, which ends by
try: a shorter time limit: -t 03:00:00
--- exit 5
$ fairbank alloc freeze -A story_a -r cpu --reason 'audit of June'
$ fairbank --as 61001
PROJECT RESOURCE STATE USED HELD MY-CAP MY-LEFT AVAILABLE
story_a cpu frozen 0 8 20 12 0
! story_a/cpu: frozen since
audit of June
Your running jobs, 8 of cpu held
"""


def test_user_sees_what_is_left_for_them_and_why_a_job_is_refused(
    site: FairbankServer, tmp_path: Path
) -> None:
    tell(LEFT, site, tmp_path)
    (row,) = document(tmp_path / "left.json")["data"]
    assert amounts(row, "deposited held remaining my_cap my_left available") == [
        *((6_000, "100"), (480, "8"), (5_520, "92"), (1_200, "20"), (720, "12"), (720, "12"))
    ]


# --- B: who used what ---

FEBRUARY = "-S 2025-02-01 -E 2025-03-01"
GRANTS = """
$ fairbank alloc create -A story_b -r cpu --start 2025-02-01 --end 2025-03-01 --amount 4000 \
    --reason 'call 1'
$ fairbank alloc create -A story_b -r gpu --start 2025-02-01 --end 2025-03-01 --amount 1500 \
    --reason 'call 1'
"""
# Job, owner, partition, TRES, hours, hours of processors used.
JOBS = (
    (301, 61_001, "cpu", "cpu=8", 10, 40),
    (302, 61_002, "cpu", "cpu=4", 5, 20),
    (303, 61_001, "gpu", "cpu=4,gres/gpu=2", 20, 20),
)
USED = f"""
# 301: 8 CPUs x 10 h = 80 SU, 40 of its 80 hours used, so 40 SU wasted. 302: 4 x 5 = 20, all used.
# 303: 2 GPUs x 20 h = 40 SU (4 CPUs are less), 20 of its 4 x 20 = 80 hours used: 30 SU wasted.
# In all 60 of the 80 + 20 = 100 hours on partition cpu. CPUs and GPUs are never added.
$ fairbank usage -A story_b {FEBRUARY} -o USER,RESOURCE,JOBS,SU,SHARE%,EFF%,WASTED
61001 cpu 1 80 80.0%
50% 40
61002 cpu 1 20 20.0%
100% 0
61001 gpu 1 40 100.0%
25% 30
TOTAL cpu 2 100 100.0% 60% 40
TOTAL gpu 1 40 100.0% 25% 30
cannot be added
$ fairbank usage -A story_b {FEBRUARY} --json > usage.json
$ fairbank eff 303 -o JOBID,CPUS,CPU-USED,GIVEN,EFF%,SU,WASTED
303 4 20:00:00 3-08:00:00 25% 40 30
# February has 28 x 24 = 672 hours: 10 CPUs give 6,720 SU, of which 4,000 are granted, 59.5 %, and
# 100 used, 1.5 %. 2 GPUs give 1,344 SU: 1,500 are 111.6 % and too many; 40 used are 3.0 %.
# The jobs had 80 + 20 + 80 = 180 CPU-hours and 2 x 20 = 40 GPU-hours.
# All was charged, so the jobs had 100 and 40 SU: 6,620 and 1,304 were idle, or down.
$ fairbank report centre {FEBRUARY} -o RESOURCE,CAPACITY,GRANTED,GRANTED%,USED,USED%,OCCUPIED,IDLE
cpu 6,720 4,000 59.5% 100 1.5% 100 6,620
gpu 1,344 1,500 111.6% 40 3.0% 40 1,304
! gpu: 1,500 SU are granted for this time, 111.6% of the 1,344 SU that exist.
1 project, 2 allocations, 3 jobs, 180 CPU-hours, 40 GPU-hours.
"""


def send_end(site: FairbankServer, job: int, start: int, hours: int, **facts: object) -> None:
    report = {"do": "complete", "cluster": "lab", "job_id": job, "submitted": start - 600}
    report |= {"account": "story_b", "owner_uid": 61_002, "partition": "cpu", "state": "COMPLETED"}
    report |= {"start": start, "end": start + hours * HOUR, "elapsed": hours * HOUR}
    client_of(site).post("/job", report | facts)


def test_use_of_two_resources_is_shown_for_users_jobs_and_the_centre(
    site: FairbankServer, tmp_path: Path
) -> None:
    tell(GRANTS, site, tmp_path)
    start = parse_instant("2025-02-03T08:00Z")
    for job, owner, partition, tres, hours, used in JOBS:
        facts = {"owner_uid": owner, "partition": partition, "tres": tres}
        send_end(site, job, start, hours, **facts, cpu_seconds=used * HOUR)
    tell(USED, site, tmp_path)
    totals = document(tmp_path / "usage.json")["totals"]
    assert [(row["resource_name"], *amounts(row, "charged wasted")) for row in totals] == [
        ("cpu", (6_000, "100"), (2_400, "40")),
        ("gpu", (2_400, "40"), (1_800, "30")),
    ]


MARCH = "-S 2025-03-01 -E 2025-04-01"
GRANTS_OF_MARCH = """
$ fairbank alloc create -A story_b -r cpu --start 2025-03-01 --end 2025-04-01 --amount 4000 \
    --reason 'call 1'
$ fairbank alloc create -A story_b -r debug --start 2025-03-01 --end 2025-04-01 --amount 50 \
    --reason 'call 1'
"""
IDLE = f"""
$ fairbank refund 311 16 --reason 'disk failed'
refund of 16 SU of job 311
# March has 31 x 24 = 744 hours, so 10 CPUs give 7,440 SU. 311 had 8 CPUs x 10 h = 80 SU, less 16
# that came back. 312 had 4 x 5 = 20 for nothing, as QOS standby is free; 313 had 6 x 10 = 60 at
# half the price. 314 had 10 x 4 = 40, and its node failed. 315 had 2 x 5 = 10, which QOS debug paid
# with credit of its own. Charged were 80 - 16 + 30 = 94. The jobs had 80 + 20 + 60 + 40 + 10 = 210,
# and no job the other 7,230. No job had one of the 2 GPUs: 2 x 744 = 1,488 SU.
$ fairbank report centre {MARCH} -o RESOURCE,CAPACITY,USED,OCCUPIED,IDLE,DOWN
cpu 7,440 94 210 7,230 -
debug 10 - - -
gpu 1,488 0 0 1,488 -
cpu, gpu: DOWN is not known; IDLE includes it
$ fairbank report centre {MARCH} --json > centre.json
"""


def test_what_ran_free_or_cheaper_or_on_credit_of_a_qos_is_not_idle(
    site: FairbankServer, tmp_path: Path
) -> None:
    tell(GRANTS_OF_MARCH, site, tmp_path)
    start = parse_instant("2025-03-03T08:00Z")
    send_end(site, 311, start, 10, tres="cpu=8", qos="normal")
    send_end(site, 312, start, 5, tres="cpu=4", qos="standby")
    send_end(site, 313, start, 10, tres="cpu=6", qos="low")
    send_end(site, 314, start, 4, tres="cpu=10", state="NODE_FAIL")
    send_end(site, 315, start, 5, tres="cpu=2", qos="debug")
    tell(IDLE, site, tmp_path)
    cpu, debug, gpu = document(tmp_path / "centre.json")["data"]
    assert amounts(cpu, "used occupied idle") == [(5_640, "94"), (12_600, "210"), (433_800, "7230")]
    assert (debug["used"], debug["occupied"], debug["idle"]) == (600, None, None)
    assert amounts(gpu, "used occupied idle") == [(0, "0"), (0, "0"), (89_280, "1488")]
    assert [row["down"] for row in (cpu, debug, gpu)] == [None, None, None]


# --- C: what happened to every unit ---

MOVED = """
$ fairbank alloc create -A story_c -r cpu --end now+1year --amount 100 --reason 'call 1'
$ fairbank hold 401 -A story_c -p cpu -t 3:00:00 --tres cpu=4 -u 61003
$ fairbank charge 401 --amount 5
charge of 5 SU
7 SU of its hold returned; remaining 95 SU
$ fairbank refund 401 2 --reason 'disk failed'
refund of 2 SU of job 401
remaining 97 SU
$ fairbank withdraw -A story_c -r cpu 1000 --reason unused --yes
requested 1,000 SU, unused 97 SU, short by 903 SU
--- exit 5
$ fairbank withdraw -A story_c -r cpu 10 --reason unused --yes
# The hold takes 4 x 3 = 12 SU out; with the charge of 5 the other 7 come in. 100 - 12 + 7 + 2 - 10
# are 87. Used are 5 - 2 = 3 of 100 - 10 = 90 granted. The declined withdrawal moved nothing.
$ fairbank statement -A story_c -r cpu
granted 90
(opening) 0
deposit 100 100 call 1
hold 401 12 88
charge 401 7 95 5 used of 12 held
refund 401 2 97 disk failed
withdraw 10 87 unused
(closing) 87
ok used 3 + held 0 + remaining 87 = granted 90 SU
$ fairbank statement -A story_c -r cpu --json > moved.json
"""


def test_statement_has_every_unit_that_moved(site: FairbankServer, tmp_path: Path) -> None:
    tell(MOVED, site, tmp_path)
    statement = document(tmp_path / "moved.json")
    assert [(row["kind"], row["amount"], row["available"]) for row in statement["data"]] == [
        ("deposit", 6_000, 6_000),
        ("hold", 720, 5_280),
        ("charge", 300, 5_700),
        ("refund", 120, 5_820),
        ("withdraw", 600, 5_220),
    ]
    assert amounts(statement["opening"], "available") == [(0, "0")]
    closing = amounts(statement["closing"], "deposited charged held available")
    assert closing == [(5_400, "90"), (180, "3"), (0, "0"), (5_220, "87")]


# --- D: why ---

WHY = f"""
$ QUEUE={GOLDEN}/slurm-22.05/queue WAITING={GOLDEN}/slurm-22.05/waiting
$ fairbank alloc create -A wg_astro -r cpu --end now+1year --amount 10 --reason 'call 1'
# 4 CPUs for 3 h are 12 SU, 2 more than there are; 10 SU are 10 / 4 = 2.5 hours.
$ fairbank hold 601 -A wg_astro -p cpu -t 3:00:00 --tres cpu=4 -u 61004
requested 12 SU, available 10 SU, short by 2 SU.
--- exit 5
$ fairbank why 601 --from $QUEUE
The bank refused job 601
requested 12 SU, available 10 SU, short by 2 SU.
Remedy a shorter time limit: -t 02:30:00
more credit, by staff: fairbank deposit
2 --reason '...'
$ fairbank why 601 --from $QUEUE --json > why.json
$ fairbank jobs --refused -A wg_astro --json > refused.json
# 32 GiB x 0.5 are 16 SU an hour, more than 4 for 4 CPUs: 32 SU in 2 h. With 8 GiB the CPUs count.
$ fairbank quote -A wg_astro -p cpu -t 2:00:00 -c 4 --mem 32G
mem, GiB 32 x 0.5 = 16 <- sets the price
hold at start 32 SU
available 10 SU
does not fit
short by 22 SU
try: less memory, if it is enough: --mem=8G (8 SU)
--- exit 5
$ fairbank quote -A wg_astro -p cpu -t 2:00:00 -c 4 --mem 32G --json > quote.json
--- exit 5
# Of the 12 jobs that wait at 18:01:17 job 16 may not run in cpu. All are 2 s old. Job 5 takes all
# six nodes for 2 h. A course has two of them from 20:01:16 to 21:01:16, so its likely start is
# after that, 10,799 s later; slurmctld expects 21:02:02. Job 9 is of the course; job 12 is held.
$ fairbank queue --from live -p cpu --utc
11 jobs waiting in cpu
5 alice cpu 101304 6 6 02:00:00 2 s Resources in 3 h
9 carol cpu 101050 1 1 00:10:00 2 s Reservation in 2 h
12 alice cpu 0 1 1 00:10:00 2 s JobHeldUser -
LIKELY is from one simulated run
$ fairbank queue --from live -p cpu --json > queue.json
# Size 0.1016447 of 1,000 is 101.64: 100,000 + 101.64 + 1,000 are 101,101.64, and slurmctld cuts the
# fraction off. Job 5 has size 304.93, so 203.29 more.
$ fairbank prio --from $WAITING --explain -j 6
priority 101,101, 2nd of 7 that wait in cpu
fair share 100,000 1.000 x 100,000
job size 102 0.102 x 1,000
partition 1,000 1.000 x 1,000
Just ahead: job 5 of alice with 101,304: job size +203
$ fairbank prio --from $WAITING --explain -j 6 --json > prio.json
# Bob has 10 of the 30 shares of wg_bio and used all of it: 0.333 / 1 is level 0.33, 3 times his
# share. Carol has 20 of 30 and used nothing. No pause of bob changes that he alone used something.
$ fairbank share --from . -A wg_bio -a --tree
bob 10 0.333 1.000 0.33 0.167 over, 3:1
carol 20 0.667 0.000 unused 0.250 unused
Where no other job competes for nodes, jobs start at any level
$ fairbank share --from . -A wg_bio -a --json > share.json
$ fairbank share --from . -A wg_bio -a --forecast
wg_bio bob 0.33 never never
"""


def test_refused_and_waiting_jobs_have_their_reason_and_remedy(
    site: FairbankServer, tmp_path: Path
) -> None:
    (tmp_path / "sshare.txt").write_text(printed("fair-tree", "sshare-everything"))
    (tmp_path / "config.txt").write_text(printed("fair-tree", "config"))
    whole_queue(tmp_path / "live")
    tell(WHY, site, tmp_path)
    (why,) = document(tmp_path / "why.json")["data"]
    assert (why["state"], why["run"]) == ("refused", None)
    (row,) = document(tmp_path / "refused.json")["data"]
    assert (row["job_id"], row["reason"]) == (601, "INSUFFICIENT_CREDIT")
    for refusal in (row, why["refusal"]):
        figures = amounts(refusal, "requested available shortfall")
        assert figures == [(720, "12"), (600, "10"), (120, "2")]
        assert refusal["remedies"][0] == "a shorter time limit: -t 02:30:00"
    quote = document(tmp_path / "quote.json")["quote"]
    assert amounts(quote, "total after") == [(1_920, "32"), (-1_320, "-22")]
    assert (quote["fits"], quote["cheaper"][-1]["value"]) == (False, "8G")
    waiting = document(tmp_path / "queue.json")["data"]
    assert (len(waiting), waiting[-1]["job_id"]) == (11, "12")
    shown = ("job_id", "priority", "limit_seconds", "age_seconds", "reason")
    assert [waiting[0][name] for name in shown] == ["5", 101_304, 7_200, 2, "Resources"]
    starts = [waiting[0][f"{name}_in_seconds"] for name in ("likely_start", "start")]
    assert starts == [10_799, 10_799 + 46]
    (second,) = document(tmp_path / "prio.json")["data"]
    place = (second["position"], second["waiting"], second["ahead"]["job_id"])
    assert (place, second["priority"]) == ((2, 7, 5), 101_101)
    _, *users = document(tmp_path / "share.json")["data"]
    assert [(user["user"], user["shares"], user["regime"]) for user in users] == [
        ("bob", 10, "over"),
        ("carol", 20, "unused"),
    ]
    assert [user["level"] for user in users] == [0.333333, "inf"]


# --- E: JSON and scripts ---

SCRIPT = """
$ fairbank alloc create -A story_e -r cpu --end now+1year --amount 1.5 --reason 'call 1'
active, 1.50 SU remaining
# 90 minutes of a CPU are 1.5 SU or 90 SU-minutes; a day would cost 24 SU or 1,440.
$ fairbank --json --as 61005 > overview.json
$ fairbank hold 501 -A story_e -p cpu -t 1-00:00:00 --tres cpu=1 --json > refused.json
requested 24 SU, available 1.50 SU, short by 22.50 SU
--- exit 5
$ fairbank balance --json --server unix:/nowhere > unreachable.json
no bank answers at unix:/nowhere
--- exit 6
"""


def test_scripts_get_whole_su_minutes_and_problem_documents(
    site: FairbankServer, tmp_path: Path
) -> None:
    tell(SCRIPT, site, tmp_path)
    overview = document(tmp_path / "overview.json")
    assert (overview["bank"], overview["amounts_in"]) == ("fairbank", "SU-minutes")
    (row,) = overview["data"]["balances"]
    assert amounts(row, "available") == [(90, "1.50")]
    (same,) = client_of(site).get("/alloc", {"account": "story_e"})["data"]
    assert amounts(same, "available") == [(90, "1.50")]
    refused = document(tmp_path / "refused.json")
    assert (refused["type"], refused["status"]) == ("/problem/refused", 402)
    figures = amounts(refused["refusal"], "requested available shortfall")
    assert figures == [(1_440, "24"), (90, "1.50"), (1_350, "22.50")]
    unreachable = document(tmp_path / "unreachable.json")
    assert (unreachable["status"], unreachable["field"]) == (503, "--server")


# --- F: the right bank, safely ---

SAFE = """
$ fairbank alloc create -A story_f -r cpu --end now+1year --amount 7 --reason 'call 1'
# A pipe answers no question, so the grant of 7 SU is still there.
$ echo y | fairbank restore monday.fbk --replace --config $CONFIG
settings
store
! the bank's server is running at
there is no terminal to ask on, so nothing was changed
try: add --yes
--- exit 2
$ fairbank balance -A story_f
bank fairbank
story_f cpu 7 0 0 7
$ BANK=$FAIRBANK_SERVER; unset FAIRBANK_SERVER
$ fairbank balance -A story_f
is not running: nothing answers at
try: start it with: fairbank serve --config
--- exit 6
$ fairbank balance -A story_f --server $BANK --json > here.json
"""


def test_answer_names_its_bank_and_nothing_is_replaced_unasked(
    site: FairbankServer, tmp_path: Path
) -> None:
    own = tmp_path / ".local/state/fairbank/fairbank.toml"
    own.parent.mkdir(parents=True)
    own.write_text(site.config.read_text().replace(str(site.socket), f"{own.parent}/bank.sock"))
    tell(SAFE, site, tmp_path)
    here = document(tmp_path / "here.json")
    assert (here["bank"], here["data"][0]["available"]) == ("fairbank", 420)


# --- G: without a scheduler, and credit of a QOS ---

BY_HAND = """
$ fairbank alloc create -A story_g -r cpu --start 2026-02-01 --end now+1year --amount 100 \
    --reason 'call 1'
$ fairbank alloc create -A story_g -r debug --end now+1year --amount 10 --reason 'call 1'
$ fairbank alloc create -A story_g -r storage --start 2026-02-01 --end 2036-02-01 --amount 7304 \
    --reason quota
# Of QOS debug 4 CPUs for 2 h hold 8 of the 10 SU of debug. 3 are charged, 5 come back: 7 left.
$ fairbank hold 701 -A story_g -p cpu -q debug -t 2:00:00 --tres cpu=4
hold of 8 SU
(story_g/debug); remaining 2 SU
$ fairbank charge 701 --amount 3
5 SU of its hold returned; remaining 7 SU
$ fairbank hold 702 -A story_g -p cpu -t 2:00:00 --tres cpu=4
(story_g/cpu); remaining 92 SU
$ fairbank release 702 --reason 'never started'
release of 8 SU
remaining 100 SU
# 16 GiB are 8 SU an hour: 12 SU in 1.5 h.
$ fairbank import csv jobs.csv --yes
1 run charged, 12 SU; 0 known already
# A TiB-day costs 1 SU: 2.5 + 3 = 5.5. 7,304 SU in 3,652 days are 2 TiB on average.
$ fairbank storage import tib.csv --yes
2 measurements charged, 5.50 SU; 0 known already
! over its quota: story_g: 3.00 TiB on 2026-02-03, quota 2.00 TiB
$ fairbank balance -A story_g -o RESOURCE,USED,HELD,AVAILABLE
cpu 12.00 0 88.00
debug 3.00 0 7.00
storage 5.50 0 7,298.50
$ fairbank balance -A story_g --json > left.json
"""
CSV = "job_id,user,account,partition,start,end,cpus,memory\n"
CSV += "703,root,story_g,cpu,2026-02-02T08:00Z,2026-02-02T09:30Z,4,16G\n"
TIB = "account,day,tib_days\nstory_g,2026-02-02,2.5\nstory_g,2026-02-03,3\n"


def test_use_without_a_scheduler_is_charged_by_hand_and_from_files(
    site: FairbankServer, tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text(CSV)
    (tmp_path / "tib.csv").write_text(TIB)
    tell(BY_HAND, site, tmp_path)
    rows = document(tmp_path / "left.json")["data"]
    assert [(row["resource"], row["charged"], row["available"]) for row in rows] == [
        ("cpu", 720, 5_280),
        ("debug", 180, 420),
        ("storage", 330, 437_910),
    ]


# --- H: categories, short-term allocations and pre-debits of HADM ---

COURSE = """
# Category starter grants 10 to 500 SU of cpu for at most 93 days.
$ fairbank alloc create -A story_h -r cpu --category starter --end now+30days --amount 600 \
    --reason 'call 1'
starter grants at most 500 SU of cpu, and this would be 600 SU
--- exit 4
$ fairbank alloc create -A story_h -r cpu --category strater --end now+30days --reason 'call 1'
there is no such category: 'strater'; there are: research; starter
--- exit 3
$ fairbank alloc create -A story_h -r cpu --category starter --end now+30days --amount 100 \
    --reason 'call 1'
100 SU remaining
$ fairbank deposit -A story_h -r cpu 401 --reason more --json > refused.json
--- exit 4
$ fairbank alloc create -A story_h -r gpu --end now+3days --amount 50 --partition gpu \
    --reservation course_5 --reason 'spring school'
$ fairbank alloc list -A story_h -o +PARTITION,RESERVATION
story_h gpu
50 50 gpu course_5
"""
PREDEBIT = """
# A pre-debit of 720 SU-minutes held 12 SU; it is completed with 300, so 5 SU are used of 100.
$ sproject jobs -A story_h -o PROJECT,JOB-ID,STATUS,AMOUNT
story_h 801 completed 5
$ fairbank balance -A story_h -r cpu
story_h cpu 100 5 0 95
"""


def test_grants_follow_their_category_and_predebits_are_completed(
    site: FairbankServer, tmp_path: Path
) -> None:
    tell(COURSE, site, tmp_path)
    refusal = document(tmp_path / "refused.json")
    assert (refusal["status"], refusal["refusal"]["reason"]) == (403, "OUTSIDE_CATEGORY")
    client = client_of(site)
    job = {"do": "predebit", "job_id": 801, "owner_uid": 61_008}
    job |= {"resource": "cpu", "project": "story_h"}
    held = client.post("/job", {**job, "amount": 720})["data"]
    assert amounts(held, "held available") == [(720, "12"), (5_280, "88")]
    ended = client.post("/job", {**job, "amount": 300, "status": "completed"})["data"]
    assert amounts(ended, "charged available") == [(300, "5"), (5_700, "95")]
    tell(PREDEBIT, site, tmp_path)
    query = {"account": "story_h", "status": "completed"}
    (row,) = client.get("/predebit", query)["data"]
    assert (row["job_id"], row["status"], row["amount"]) == (801, "completed", 0)


# --- I: the releases of Slurm in use ---

RELEASES = f"""
# The plug-ins fit the releases that they were compiled with. The client of the prolog fits all.
$ SLURM_VERSION=27.05.1 {CHECKOUT}/plugins/build plugins
plugins/prolog_client for each Slurm
Slurm 27.05.1: these plug-ins are for 22.05, 23.02, 23.11, 24.05, 24.11, 25.05, 25.11, 26.05
see "Without the plug-in" in docs/howto/install-next-to-slurm.md
--- exit 1
$ fairbank doctor --slurm -n -o OK,CHECK
ok Slurm 26.05.5 of cluster lab: its answers are known
--- exit 8
$ fairbank doctor --slurm --json > known.json
--- exit 8
$ echo slurm 27.05.1 > slurm/answers/sinfo
$ fairbank doctor --slurm --json > new.json
--- exit 8
"""


def test_each_recorded_release_is_known_and_a_later_one_gets_the_client(
    site: FairbankServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    slurm = RecordedSlurm(tmp_path / "slurm")
    slurm.set_output("sinfo", (GOLDEN / "slurm-26.05" / "version.txt").read_text())
    config = (GOLDEN / "slurm-26.05" / "config.txt").read_text()
    slurm.set_output("scontrol-show-config", config)
    monkeypatch.setenv("PATH", slurm.environment["PATH"])
    tell(RELEASES, site, tmp_path)
    for name, answers in (
        ("known", "Slurm 26.05.5 of cluster lab: its answers are known"),
        ("new", "Slurm 27.05.1 of cluster lab: its answers were never recorded, only those of"),
    ):
        check, *_ = document(tmp_path / f"{name}.json")["data"]
        assert check["what"].startswith(answers)
