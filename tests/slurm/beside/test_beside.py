"""The commands beside Slurm, against a bank that runs and a Slurm that says what was recorded."""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from fairbank.cli import main
from fairbank.compose import Works
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.answers.values import Job
from fairbank.slurm.bank import Bank, Progress, silent
from fairbank.slurm.commands import Slurm
from fairbank.slurm.importer import Importer
from fairbank.slurm.judging.books import BookedProject
from fairbank.slurm.judging.reconcile import Kind
from fairbank.slurm.reconciler import Reconciler
from fairbank.values.time import DAY, iso
from tests.cli.conftest import Said
from tests.slurm.beside.jobs import a_job, row_of
from tests.support.recorded import Recorded, line
from tests.support.server import FairbankServer, made

pytestmark = pytest.mark.slow

ME, MY_UID = pwd.getpwuid(os.geteuid()).pw_name, os.geteuid()
HOUR = 3_600
GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")


class Centre:
    """A bank and a Slurm, and the commands between them."""

    def __init__(self, bank: FairbankServer, slurm: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
        self.bank, self.slurm, self._capsys = bank, slurm, capsys
        self.now = int(time.time())
        self.client = Client(parse_address(f"unix:{bank.socket}"))

    def tell(self, *words: str, code: int = 0) -> str:
        """What a command said on stdout; its exit code must be `code`."""
        return self.said(*words, code=code).out

    def said(self, *words: str, code: int) -> Said:
        """The same with its talk."""
        self._capsys.readouterr()
        ended = main.run(words, Works())
        told = self._capsys.readouterr()
        assert ended == code, told.out + told.err
        return Said(ended, told.out, told.err)

    def reconciled(self, *words: str, code: int = 0) -> list[dict[str, object]]:
        """The rows of `fairbank reconcile`."""
        rows: list[dict[str, object]] = json.loads(self.tell("reconcile", "--json", *words, code=code))["data"]
        return rows

    def ran(self, *jobs: Job) -> None:
        """From now on accounting has these."""
        self.slurm.say("sacct", "".join(map(row_of, jobs)))
        self.slurm.say("sacct-jobs", "".join(map(row_of, jobs)))

    def job(self, number: int, **facts: object) -> Job:
        """A job of ours that began two hours ago and took ten minutes."""
        facts = {"submitted": self.now - 2 * HOUR, "owner": MY_UID, "user": ME, **facts}
        return a_job(number, **facts)  # type: ignore[arg-type]

    def report(self, job: Job, **facts: object) -> None:
        """A hold, as the agent would ask for it."""
        body = {
            "do": "hold", "cluster": "lab", "job_id": job.job_id, "submitted": job.submitted, "owner_uid": MY_UID, "account": job.account,
            "partition": job.partition, "start": job.start, "time_limit": job.limit_seconds, "tres": job.tres, **facts,
        }  # fmt: skip
        self.client.post("/job", body)

    def available(self) -> int:
        rows = json.loads(self.tell("balance", "-A", "chem", "--json"))["data"]
        return int(rows[0]["available"])


PRICES = """
[clusters.lab.partitions.cpu]
resource = "cpu"
weights = "CPU=1.0,Mem=0.5G"
[clusters.lab.partitions.gpu]
resource = "gpu"
weights = "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0"
[clusters.lab.partitions."gpu-t4"]
resource = "gpu"
weights = "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"
"""


@contextmanager
def a_centre(folder: Path, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prices: str) -> Iterator[Centre]:
    """Slurm's account chem with us in it, bio below it, and its partitions; a bank that has heard of neither."""
    slurm = Recorded.of_the_lab(folder / "slurm")
    slurm.say("sacctmgr-show-associations", f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n")
    slurm.say("sacctmgr-show-account", f"root|\nchem|{ME}\nbio|\n")
    slurm.say("scontrol-show-config", f"ClusterName = lab\nPriorityFlags = MAX_TRES\nSlurmUser = {ME}({MY_UID})\n")
    slurm.say("sacct", "")
    slurm.say("squeue", "")
    slurm.say("sshare", "root||0|\nchem||600|cpu=1,billing=30\n")
    environment.setenv("PATH", slurm.environment["PATH"])
    with made() as bank:
        bank.config.write_text(bank.config.read_text().partition("[clusters.local]")[0] + prices)
        bank.start()
        for name, value in bank.environment.items():
            environment.setenv(name, value)
        yield Centre(bank, slurm, capsys)


@pytest.fixture
def centre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Centre]:
    """A bank without prices, and without projects."""
    with a_centre(tmp_path, monkeypatch, capsys, "") as found:
        yield found


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Centre]:
    """A bank with prices, projects, us in one, and 10 SU (600 SU-minutes) for it."""
    with a_centre(tmp_path, monkeypatch, capsys, PRICES) as found:
        ask = found.client
        chem = ask.post("/project", {"gname": "chem", "gid": 50_001})["data"]["id"]
        ask.post("/project", {"gname": "bio", "gid": 50_002, "parent": chem})
        ask.put(f"/project/{chem}/member/{MY_UID}", {"role": "coordinator"})
        start, end = (iso(found.now + days * DAY) for days in (-30, 30))
        terms = {"resource": "cpu", "category": "test", "start": start, "end": end, "amount": 600, "comment": "a test"}
        ask.post("/alloc", {"project": chem, **terms})
        yield found


# --- import ---


def test_import_enters_what_slurm_has_and_nothing_twice(centre: Centre) -> None:
    planned = centre.tell("slurm", "import", *GIDS, "--dry-run")
    assert planned.startswith(
        "project chem: group chem (50001)\n"
        "project bio: group bio (50002), under chem\n"
        f"project chem: {ME} ({MY_UID}) is coordinator\n\nFor the bank's settings:\n\n[clusters.lab]\n"
    )
    assert json.loads(centre.tell("project", "list", "--json"))["data"] == []
    assert "entered: 3 things\n" in centre.tell("slurm", "import", *GIDS)
    projects = json.loads(centre.tell("project", "list", "--json"))["data"]
    assert [(each["account"], each["gid"], each["parent"]) for each in projects] == [("chem", 50001, None), ("bio", 50002, 1)]
    assert centre.tell("slurm", "import").startswith("The bank has every account and user of cluster lab.\n")


def test_import_tells_what_it_cannot_enter(centre: Centre) -> None:
    said = centre.said("slurm", "import", "--dry-run", code=0)
    assert "account chem: this host has no group of this name; name its number: --gid chem=NUMBER" in " ".join(said.err.split())


def test_import_goes_on_past_names_that_other_projects_have(centre: Centre) -> None:
    number = centre.client.post("/project", {"gname": "chemists", "gid": 50_001})["data"]["id"]
    said = centre.said("slurm", "import", *GIDS, code=0)
    assert f"! account chem: project {number} (chemists) has its gid 50001 already; name another: --gid chem=NUMBER" in " ".join(
        said.err.split()
    )
    assert [each["account"] for each in centre.client.get("/project")["data"]] == ["chemists", "bio"]


def test_import_goes_on_past_what_the_bank_refuses(centre: Centre) -> None:
    """Somebody entered chem while we asked."""

    class Before(Bank):
        def projects(self, progress: Progress = silent, *, removed: bool = False) -> list[BookedProject]:
            return []

    centre.client.post("/project", {"gname": "chem", "gid": 50_003})
    gids = {"chem": 50_001, "bio": 50_002}
    found = Importer(Slurm({**os.environ, **centre.slurm.environment}), Before(centre.client), gids=gids).people(cluster="lab")
    assert [no.partition(":")[0] for no in found.refused] == ["account chem", f"user {ME}"]
    assert "a project with this group, gid or account exists" in found.refused[0]
    assert [each["account"] for each in centre.client.get("/project")["data"]] == ["chem", "bio"]


def test_the_settings_that_import_writes_price_as_slurm_bills(centre: Centre) -> None:
    lines = centre.bank.folder / "cluster.toml"
    assert f"written: {lines}\n" in centre.tell("slurm", "import", *GIDS, "--settings", str(lines))
    centre.bank.stop()
    centre.bank.config.write_text(centre.bank.config.read_text() + lines.read_text())
    centre.bank.start()
    said = centre.said("slurm", "import", code=0)
    assert said.out == "The bank has every account and user of cluster lab.\n"
    assert said.err == ""


def test_a_history_is_charged_once(opened: Centre) -> None:
    opened.ran(opened.job(1), opened.job(2, account="bio", elapsed=60), opened.job(3, elapsed=0), opened.job(4, state="RUNNING"))
    words = ("slurm", "import", "-S", "now-1day", "--cover")
    assert opened.tell(*words).splitlines()[1:] == [
        "allocation for bio/cpu: 0.07 SU for 1 run, category history",
        "history: 2 runs charged, 0.73 SU; 0 known already",
    ]
    assert opened.available() == 600 - 40
    assert opened.tell(*words).splitlines()[1:] == ["history: 0 runs charged, 0 SU; 2 known already"]
    assert opened.available() == 600 - 40
    assert opened.tell("audit", "verify").endswith("every row is as the journal says\n")


# --- reconcile ---


def test_books_that_agree(opened: Centre) -> None:
    assert "The books and accounting agree." in opened.said("reconcile", code=0).err


def test_what_the_bank_never_heard_of_is_charged_when_that_is_asked(opened: Centre) -> None:
    opened.ran(opened.job(1))
    (row,) = opened.reconciled(code=8)
    assert (row["kind"], row["amount"], row["done"]) == ("MISSING", 40, "no")
    assert opened.available() == 600
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["done"]) == ("MISSING", "yes")
    assert opened.available() == 560
    assert opened.reconciled() == []
    assert opened.reconciled("--fix") == []
    assert opened.available() == 560


def test_how_it_ended_and_what_time_it_used_is_told_with_it(opened: Centre) -> None:
    """Steps have lines of their own there; one that cannot be read costs nothing but what it would have told."""
    first, second = opened.job(1, state="FAILED"), opened.job(2)
    opened.ran(first, second)
    submitted = iso(first.submitted)[:-1]
    opened.slurm.say(
        "sacct-spent",
        line(1, submitted, "127:0", "20:00.500") + line("1.batch", submitted, "1:0", "10:00") + line(2, submitted, "soon", "never"),
    )
    opened.reconciled("--fix")
    rows = {row["job_id"]: row for row in opened.client.get("/job")["data"]}
    told = ("tres", "nodes", "cpus", "time_limit", "exit_code", "exit_signal", "cpu_seconds")
    assert [rows[1][each] for each in told] == ["cpu=4,mem=4000M,node=1", 1, 4, 3_600, 127, 0, 1_201]
    assert [rows[2][each] for each in told] == ["cpu=4,mem=4000M,node=1", 1, 4, 3_600, None, None, None]


def test_a_lost_epilog_is_made_good_to_the_minute(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job)
    assert opened.available() == 600 - 240
    opened.ran(job)
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)
    assert opened.available() == 560


def test_half_a_record_is_charged_by_what_the_bank_was_told_of_the_start(opened: Centre) -> None:
    """And where the bank has heard the end, too, nothing is left to mend."""
    job = opened.job(1)
    opened.report(job)
    opened.ran(msgspec.structs.replace(job, partition="", tres="", qos=None, limit_seconds=None))
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("OPEN", 40, "yes")
    assert opened.available() == 560
    told = opened.tell("reconcile")
    assert "1  have half a record in accounting, and the bank has heard their ends itself" in told
    assert json.loads(opened.tell("reconcile", "--json"))["summary"] == {"compared": 1, "matched": 0, "free": 0, "late": 0, "half": 1}


def test_an_epilog_that_lay_before_the_period_is_found_all_the_same(opened: Centre) -> None:
    job = opened.job(1, submitted=opened.now - 10 * DAY)
    opened.report(job)
    opened.slurm.say("sacct-jobs", row_of(job))
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)


def test_a_hold_that_was_asked_for_by_another_clock(opened: Centre) -> None:
    """The run starts before the first job of the period, and is found in the books all the same."""
    job = opened.job(1)
    opened.report(job, start=job.submitted - 500)
    opened.ran(job)
    words = ("-S", f"@{job.submitted}")
    assert [row["kind"] for row in opened.reconciled("--fix", *words)] == ["OPEN"]
    assert opened.reconciled(*words) == []


def test_a_hold_for_a_job_that_is_gone_is_given_back(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job)
    (row,) = opened.reconciled(code=8)
    assert (row["kind"], row["amount"]) == ("ORPHAN", 240)
    opened.reconciled("--fix")
    assert opened.available() == 600
    assert opened.reconciled() == []


def test_a_hold_for_a_job_that_runs_is_kept(opened: Centre) -> None:
    job = opened.job(1, state="RUNNING")
    opened.report(job)
    opened.ran(job)
    queued = [str(job.job_id), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(job.submitted)), "RUNNING"]
    opened.slurm.say("squeue", "\x1f".join(queued) + "\n")
    assert opened.reconciled("--fix") == []
    assert opened.available() == 360


def test_nothing_is_given_back_while_lines_cannot_be_read(opened: Centre) -> None:
    """The line that cannot be read may be the one of the run in question."""
    opened.report(opened.job(1))
    opened.slurm.say("sacct-jobs", row_of(opened.job(1)).replace("chem", "ch|em"))
    said = opened.said("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 1, Account: 'ch|em' is not a name" in said.err
    assert opened.available() == 360


def test_whoever_may_not_see_all_jobs_gives_nothing_back(opened: Centre) -> None:
    opened.slurm.say("scontrol-show-config", "ClusterName = lab\nSlurmUser = slurm(64030)\n")
    opened.report(opened.job(1))
    for uid, done in ((61_009, "not given back: Slurm may hide jobs of others from us"), (64_030, None)):
        reconciler = Reconciler(Slurm(uid=uid), Bank(opened.client), grace_seconds=HOUR)
        (outcome,) = reconciler.reconcile(opened.now - DAY, opened.now, fix=True).outcomes
        assert (outcome.finding.kind, (outcome.said or "").partition(";")[0]) == (Kind.ORPHAN, done or "")
    assert opened.available() == 600


def test_whoever_does_not_see_the_books_is_told_so(opened: Centre) -> None:
    for words in (("reconcile",), ("shadow",), ("slurm", "import"), ("slurm", "sync")):
        said = opened.said(*words, "--as", "61009", code=4)
        assert "you do not see everybody's runs and projects" in said.err


def test_books_of_many_pages(opened: Centre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairbank.slurm.bank.PAGE", 1)
    monkeypatch.setattr("fairbank.slurm.bank.BATCH", 2)
    opened.ran(*(opened.job(number) for number in range(1, 6)))
    assert [row["done"] for row in opened.reconciled("--fix")] == ["yes"] * 5
    assert opened.reconciled() == []
    assert opened.available() == 600 - 5 * 40


def test_a_refused_charge_is_told_once_and_asked_again_only_on_demand(opened: Centre) -> None:
    opened.ran(opened.job(1, account="bio"))
    (row,) = opened.reconciled("--fix", code=8)
    assert str(row["done"]).startswith("the project has no allocation of this resource at this time")
    for words in ((), ("--fix",)):
        (row,) = opened.reconciled(*words, code=8)
        assert row["kind"] == "REFUSED"
    (row,) = opened.reconciled("--fix", "--again", code=8)
    assert str(row["done"]).startswith("no allocation was there that could pay")
    assert len(json.loads(opened.tell("jobs", "--refused", "-a", "--json"))["data"]) == 1
    opened.tell(
        "alloc", "create", "-A", "bio", "-r", "cpu", "--start", "now-30days", "--end", "now+1days", "--amount", "1", "--reason", "x"
    )
    opened.reconciled("--fix", "--again")
    assert opened.reconciled() == []


def test_a_restarted_run_is_charged_under_its_own_name(opened: Centre) -> None:
    """Should the agent's own message come after all, it counts nothing twice."""
    first = opened.job(1, state="REQUEUED", elapsed=0)
    second = msgspec.structs.replace(opened.job(1), submitted=(first.end or 0) + 1)
    opened.ran(first, second)
    opened.reconciled("--fix")
    (row,) = json.loads(opened.tell("jobs", "-a", "--json"))["data"]
    assert (row["job_id"], row["restart"]) == (1, 1)
    facts = {"restart": 1, "submitted": second.submitted, "end": second.end, "elapsed": second.elapsed, "state": "COMPLETED"}
    opened.report(second, do="complete", qos="normal", **facts)
    assert opened.available() == 560


def test_a_dead_slurmdbd_changes_nothing(opened: Centre) -> None:
    opened.report(opened.job(1))
    opened.slurm.forget("sacct")
    said = opened.said("reconcile", "--fix", code=6)
    assert "sacct ended with 1" in said.err
    assert opened.available() == 360


def test_what_people_see(opened: Centre) -> None:
    opened.ran(opened.job(1), opened.job(2))
    lines = opened.tell("reconcile", code=8).splitlines()
    assert lines[0].startswith("Compared 2 finished runs of cluster lab in ")
    assert lines[1:4] == [
        "          0  agree to the minute",
        "          0  ran for no time and cost nothing",
        "          2  ended in Slurm, unknown to the bank   would charge 1.33 SU",
    ]
    assert opened.said("reconcile", "--progress", "plain", code=8).err.startswith("sacct 50%\nsacct 100%\n")


def test_wrong_words_are_told(opened: Centre) -> None:
    assert "--again does nothing by itself" in opened.said("reconcile", "--again", code=2).err
    assert "the period ends before it begins" in opened.said("reconcile", "-S", "now", "-E", "now-1day", code=2).err
    assert "belongs to cluster lab, not darwin" in opened.said("reconcile", "-M", "darwin", code=2).err


# --- shadow ---


def test_shadow_posts_nothing(opened: Centre) -> None:
    opened.ran(opened.job(1), opened.job(2, account="bio"), opened.job(3, limit_seconds=None))
    (bio, chem) = json.loads(opened.tell("shadow", "--json"))["data"]
    assert (bio["account"], bio["refused"]) == ("bio", 1)
    assert (chem["jobs"], chem["charged"], chem["refused"], chem["left"]) == (2, 40, 1, 560)
    refused = json.loads(opened.tell("shadow", "--refused", "--json"))["data"]
    assert {each["job_id"]: each["reason"] for each in refused} == {2: "NO_ALLOCATION", 3: "NO_LIMIT"}
    assert opened.available() == 600
    assert "2 would have been refused" not in opened.said("shadow", code=0).err


# --- sync ---


def site(centre: Centre, text: str = "") -> Path:
    path = centre.bank.folder / "slurm.toml"
    path.write_text(f'policy = "{centre.bank.folder}/policy"\npublic_policy = "{centre.bank.folder}/public"\n{text}')
    return path


def test_the_policy_file_is_written_from_the_bank(opened: Centre) -> None:
    rules = site(opened, 'price = "refuse"\nexempt = [7]\n[projects.bio]\npartition = "gpu-t4"\nreservation = "course"\n')
    assert "would write" in opened.tell("slurm", "sync", "--site", str(rules), "--dry-run")
    policy, public = opened.bank.folder / "policy", opened.bank.folder / "public"
    assert not policy.exists()
    assert opened.tell("slurm", "sync", "--site", str(rules)) == (
        f"written: {policy}, 2 projects of cluster lab\nwritten: {public}, 2 projects of cluster lab\n"
    )
    lines = policy.read_text().splitlines()
    assert {"cluster\tlab", "price\trefuse", "exempt\t7", "gpu\tgpu\ta100", "gpu\tgpu-t4\tt4", "balances\ttold"} <= set(lines)
    assert f"project\tchem\t50001\tchem\t\t\t\t {MY_UID} " in lines
    assert "project\tbio\t50002\tbio\t\tgpu-t4\tcourse\t " in lines
    assert "balance\tchem\tcpu\t600" in lines
    assert "balances\tuntold" in public.read_text()
    assert "balance\tchem" not in public.read_text()
    assert policy.stat().st_mode & 0o777 == 0o644


def test_a_policy_keeps_its_rights_and_the_old_one_stays_when_slurm_is_odd(opened: Centre) -> None:
    rules, policy = site(opened), opened.bank.folder / "policy"
    opened.tell("slurm", "sync", "--site", str(rules))
    policy.chmod(0o640)
    opened.tell("slurm", "sync", "--site", str(rules))
    assert policy.stat().st_mode & 0o777 == 0o640
    before = policy.read_text()
    opened.slurm.say("scontrol-show-node", "NodeName=c01 RealMemory=1 Partitions=cpu\n")
    said = opened.said("slurm", "sync", "--site", str(rules), code=2)
    assert "scontrol show node, line 1, CPUTot: is not there" in " ".join(said.err.split())
    assert policy.read_text() == before
    assert [path.name for path in opened.bank.folder.glob(".policy*")] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prise = 1", "object contains unknown field `prise`"),
        ("price = 'never'", "invalid enum value 'never'"),
        ("[projects.nobody]\nqos = 'x'", "no project has the account 'nobody'"),
        ("a = [", "is not TOML"),
    ],
)
def test_wrong_rules_are_told_with_their_place(opened: Centre, text: str, told: str) -> None:
    said = opened.said("slurm", "sync", "--site", str(site(opened, text)), code=2)
    assert told.lower() in " ".join(said.err.split()).lower()


def test_accounts_and_fences_follow_the_projects(opened: Centre) -> None:
    opened.tell("project", "create", "lab7", "--gid", "50007", "--parent", "chem")
    planned = opened.tell("slurm", "sync", "--no-policy", "--accounts", "--fence", "--dry-run").splitlines()
    assert [line.partition("   #")[0] for line in planned] == [
        "sacctmgr -i add account lab7 cluster=lab description=lab7 organization=lab7 parent=chem",
        "sacctmgr -i modify account where name=chem cluster=lab set GrpTRESMins=billing=640",
        "sacctmgr -i modify account where name=bio cluster=lab set GrpTRESMins=billing=0",
        "sacctmgr -i modify account where name=lab7 cluster=lab set GrpTRESMins=billing=0",
    ]
    assert not [line for line in opened.slurm.asked if "--immediate" in line]
    assert opened.tell("slurm", "sync", "--no-policy", "--accounts", "--fence").endswith("made: 4 changes\n")
    assert [line for line in opened.slurm.asked if "--immediate" in line] == [
        f"sacctmgr --immediate {line.removeprefix('sacctmgr -i ').partition('   #')[0]}" for line in planned
    ]


# --- the doctor ---


def test_the_doctor_tells_what_is_missing_and_how_to_mend_it(opened: Centre, tmp_path: Path) -> None:
    policy, site = tmp_path / "policy", tmp_path / "slurm.toml"
    site.write_text(f'policy = "{policy}"\n')
    here = (
        f"Configuration data as of {iso(opened.now).removesuffix('Z')}\nClusterName = lab\nPriorityFlags = MAX_TRES\nAuthType = auth/none\n"
    )
    opened.slurm.say("scontrol-show-config", here)
    words = ("doctor", "--slurm", "--site", str(site), "--agent-config", str(tmp_path / "agent.toml"), "--json")
    (tmp_path / "agent.toml").write_text(f'[plugin]\nslurm_user = 0\n[control]\nsocket = "{tmp_path}/agent.sock"\n')
    checks = {each["what"]: each["remedy"] for each in json.loads(opened.tell(*words, code=8))["data"]}
    assert checks["Slurm 22.05.8 of cluster lab: its answers are known"] is None
    assert checks["the bank prices 3 partitions as Slurm bills them (max_tres)"] is None
    assert [remedy for what, remedy in checks.items() if what.startswith("the clock of")] == [None, None]
    assert "AuthType=auth/munge" in checks["Slurm signs by auth/none"]
    assert "start it with: fairbank agent" in checks[f"the agent answers: no agent answers at {tmp_path}/agent.sock"]
    assert checks[f"the submission policy {policy}: it is not there"].startswith("fairbank slurm sync writes it")
    opened.tell("slurm", "sync", "--site", str(site))
    told = [each for each in json.loads(opened.tell(*words, code=8))["data"] if str(policy) in each["what"]]
    assert [each["what"] for each in told if not each["ok"]] == []
    assert len(told) == 2


def test_the_doctor_without_a_slurm_or_a_bank(opened: Centre, tmp_path: Path) -> None:
    opened.bank.kill()
    assert "x   the bank answers: " in opened.tell("doctor", "--slurm", code=8)
    opened.slurm.forget("sinfo")
    assert opened.tell("doctor", "--slurm", code=8).startswith("x   Slurm's commands answer: sinfo ended with 1")
