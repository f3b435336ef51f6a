"""Bank built as HADM describes its own: one request is one transaction under one advisory lock.

It has everything that can be had without changing that design: the protocol, authentication and gc
settings of our server (HADM's is Flask), stored procedures (one round trip per request), one
connection per worker thread, prepared statements, indexes for every lookup.

As a program: `python -m benchmarks.hadm_bank CONNINFO SOCKET ALLOCATIONS` creates the tables and
serves.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import local
from typing import Annotated, Any

import msgspec
import psycopg
import uvicorn
from litestar import Litestar, Request, Response, post
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException

from fairbank.rest.auth.peers import peer_of
from fairbank.rest.server.http_protocol import server_config
from fairbank.rest.server.open_files import CONNECTIONS_MAX
from fairbank.rest.server.unix_socket import bind_unix

CONNECTIONS = 8  # the best of 2, 4, 8, 16 and 32 here
SUPERUSERS = frozenset({os.getuid()})

# Tables and views as in HADM's schemas 1 to 6. The sums of the view are written so that they use
# the indexes. Keys are not inherited, so each kind of activity has its own, and its own reference
# to allocations.
SCHEMA = """
CREATE TABLE projects (project_id bigserial PRIMARY KEY, gname text UNIQUE, gid bigint UNIQUE,
    account text UNIQUE);
CREATE TABLE allocations (allocation_id bigserial PRIMARY KEY, project_id bigint REFERENCES
    projects, category text, resource text,
                          start_date timestamp, end_date timestamp);
CREATE INDEX ON allocations (project_id, resource);
CREATE TABLE activity (activity_id bigserial PRIMARY KEY, allocation_id bigint NOT NULL, amount
    bigint NOT NULL, comments text);
CREATE TABLE credits (PRIMARY KEY (activity_id), FOREIGN KEY (allocation_id) REFERENCES
    allocations) INHERITS (activity);
CREATE TABLE predebits (job_id bigint, status text, owner_uid bigint,
                        PRIMARY KEY (activity_id), FOREIGN KEY (allocation_id) REFERENCES
                            allocations) INHERITS (activity);
CREATE TABLE debits (owner_uid bigint, PRIMARY KEY (activity_id), FOREIGN KEY (allocation_id)
    REFERENCES allocations) INHERITS (activity);
CREATE TABLE failures (job_id bigint, owner_uid bigint,
                       PRIMARY KEY (activity_id), FOREIGN KEY (allocation_id) REFERENCES
                           allocations) INHERITS (activity);
CREATE INDEX ON credits (allocation_id);
CREATE INDEX ON predebits (allocation_id);
CREATE UNIQUE INDEX ON predebits (job_id);
CREATE UNIQUE INDEX ON debits (allocation_id, owner_uid);

CREATE VIEW balances AS
SELECT allocation_id,
       (SELECT coalesce(sum(amount), 0) FROM credits WHERE credits.allocation_id =
           allocations.allocation_id)
       - (SELECT coalesce(sum(amount), 0) FROM predebits WHERE predebits.allocation_id =
           allocations.allocation_id)
       - (SELECT coalesce(sum(amount), 0) FROM debits WHERE debits.allocation_id =
           allocations.allocation_id) AS balance
FROM allocations;

CREATE FUNCTION predebit(for_account text, for_resource text, job bigint, owner bigint, units
    bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    found_allocation bigint;
    left_over bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    SELECT allocation_id INTO found_allocation
    FROM projects JOIN allocations USING (project_id)
    WHERE account = for_account AND resource = for_resource AND start_date <= now() AND now() <
        end_date;
    SELECT balance INTO left_over FROM balances WHERE allocation_id = found_allocation;
    IF left_over < units THEN
        INSERT INTO failures (allocation_id, amount, job_id, owner_uid) VALUES (found_allocation,
            units, job, owner);
        RETURN false;
    END IF;
    INSERT INTO predebits (allocation_id, amount, job_id, status, owner_uid) VALUES
        (found_allocation, units, job, 'executing', owner);
    RETURN true;
END
$$;

CREATE FUNCTION complete(job bigint, units bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    done predebits;
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    DELETE FROM predebits WHERE job_id = job RETURNING * INTO done;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE debits SET amount = amount + units WHERE allocation_id = done.allocation_id AND
        owner_uid = done.owner_uid;
    IF NOT FOUND THEN
        INSERT INTO debits (allocation_id, amount, owner_uid) VALUES (done.allocation_id, units,
            done.owner_uid);
    END IF;
    RETURN true;
END
$$;
"""

FILL = """
WITH made AS (
    INSERT INTO projects (gname, gid, account)
    SELECT 'p' || n, 10000 + n, 'p' || n FROM generate_series(0, %s - 1) AS n RETURNING project_id
), opened AS (
    INSERT INTO allocations (project_id, category, resource, start_date, end_date)
    SELECT project_id, 'bench', 'cpu', 'epoch', now() + interval '10 years' FROM made RETURNING
        allocation_id
)
INSERT INTO credits (allocation_id, amount) SELECT allocation_id, 1000000000000 FROM opened
"""


class Hold(msgspec.Struct, tag_field="do", tag="hold"):
    """Body of the request when a job starts."""

    job_id: int
    owner_uid: int
    account: str
    resource: str
    amount: Annotated[int, msgspec.Meta(ge=0)]


class Complete(msgspec.Struct, tag_field="do", tag="complete"):
    """Body of the request when a job ends."""

    job_id: int
    amount: Annotated[int, msgspec.Meta(ge=0)]


def create_app(conninfo: str) -> Litestar:
    """Create the application with POST /job, as our server has it for one report."""
    worker = local()

    def connect() -> None:
        worker.connection = psycopg.connect(conninfo, autocommit=True)

    @post("/job", sync_to_thread=True, before_request=_superuser)
    def job(data: Hold | Complete) -> Response[dict[str, Any]]:
        if isinstance(data, Hold):
            statement: tuple[str, tuple[Any, ...]] = (
                "SELECT predebit(%s, %s, %s, %s, %s)",
                (data.account, data.resource, data.job_id, data.owner_uid, data.amount),
            )
        else:
            statement = ("SELECT complete(%s, %s)", (data.job_id, data.amount))
        (granted,) = worker.connection.execute(*statement).fetchone()
        return Response(
            {"job_id": data.job_id, "granted": granted}, status_code=201 if granted else 402
        )

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        with ThreadPoolExecutor(CONNECTIONS, initializer=connect) as workers:
            asyncio.get_running_loop().set_default_executor(workers)
            yield

    return Litestar([job], openapi_config=None, logging_config=None, lifespan=[lifespan])


async def _superuser(request: Request[Any, Any, Any]) -> None:
    """Accept only the superuser. HADM uses MUNGE, which costs more; here the socket's credentials
    are enough.
    """
    peer = peer_of(request.scope)
    if peer is None:
        raise NotAuthorizedException
    if peer.uid not in SUPERUSERS:
        raise PermissionDeniedException


def main(conninfo: str, socket: str, allocations: int) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute(SCHEMA.encode())
        connection.execute(FILL, [allocations])
    app = create_app(conninfo)
    config = server_config(app, connections_max=CONNECTIONS_MAX)  # type: ignore[arg-type]
    gc.set_threshold(50_000, 10, 10)
    uvicorn.Server(config).run([bind_unix(Path(socket))])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
