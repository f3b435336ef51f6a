-- The statements of a batch on PostgreSQL. Each takes whole columns as arrays, so that a batch of any size is one statement.
-- Columns come in the order of the tables (fairbank.store.schema).

-- name: lock
-- The allocations named by number, those that a filter takes (some filters count only if a run that ends is not in the ledger), and those that
-- carry the runs: locked in the order of their numbers, so that two servers never wait for each other in a circle. The last row has
-- the numbers of the batch's entries, drawn when all is locked: so the entries of one journal have rising numbers, whichever server
-- writes them. A batch that locks the registry as well draws them after that instead: see entry_ids.
WITH runs AS MATERIALIZED (
SELECT run.allocation, wanted.ending
FROM unnest($8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[]) AS wanted (cluster, job_id, submitted, restart, ending)
LEFT JOIN run USING (cluster, job_id, submitted, restart)
),
locked AS MATERIALIZED (
SELECT id, project, resource, category, start_at, end_at, state, shared, partition, reservation,
       credit_limit, deposited, charged, held, overrun, seq, link
FROM allocation
WHERE id = ANY (ARRAY(
    SELECT unnest($1::bigint[])
    UNION ALL
    SELECT allocation.id
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::boolean[])
         AS filter (project, resource, first, last, own, late)
    JOIN allocation USING (project, resource)
    WHERE allocation.start_at <= filter.last AND allocation.end_at > filter.first AND (filter.own OR allocation.shared)
      AND (NOT filter.late OR EXISTS (SELECT FROM runs WHERE runs.ending AND runs.allocation IS NULL))
    UNION ALL
    SELECT runs.allocation FROM runs WHERE runs.allocation IS NOT NULL
))
ORDER BY id
FOR NO KEY UPDATE
)
SELECT locked.*, NULL::bigint[] FROM locked
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       ARRAY(SELECT nextval('entry_id_seq') FROM generate_series(1, $13::int))

-- name: registry
SELECT seq, link FROM registry FOR NO KEY UPDATE

-- name: runs
SELECT run.id, run.cluster, run.job_id, run.submitted, run.restart, run.project, run.allocation, run.owner, run.partition,
       run.state, run.held, run.charged, run.written_off, run.refunded, run.start_at, run.until_at, run.ended_at, run.outcome, run.elapsed_seconds,
       run.set_by, run.name, run.qos, run.nodes, run.cpus, run.tres, run.limit_seconds, run.exit_status, run.cpu_seconds,
       run.occupied
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS wanted (cluster, job_id, submitted, restart)
JOIN run USING (cluster, job_id, submitted, restart)

-- name: entries_by_key
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM unnest($1::bigint[], $2::text[]) AS wanted (actor, key) JOIN journal USING (actor, key)

-- name: entries_by_id
SELECT id, allocation, seq, at, kind, amount, run, owner, actor, acting_as, key, digest, deposited, charged, held, credit_limit, overrun,
       comment, details, link
FROM journal WHERE id = ANY ($1::bigint[])

-- name: undoing_entries
-- The entries that took back those wanted: in the same journal, after them.
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM journal AS undone JOIN journal ON journal.allocation = undone.allocation AND journal.seq > undone.seq
WHERE undone.id = ANY ($1::bigint[])
  AND journal.kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member', 'open')
  AND position('"undoes":' || undone.id || '}' IN journal.details) > 0

-- name: entries_of_terms
-- All entries about the terms of an allocation (-1), or about a user's cap in it; in the registry (0) about a user's roles.
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (allocation, about) JOIN journal ON journal.allocation = wanted.allocation
WHERE journal.kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member', 'open')
  AND ((journal.kind IN ('open', 'terms') AND wanted.about = -1) OR (journal.kind IN ('cap', 'member') AND journal.owner = wanted.about))

-- name: users
SELECT allocation, uid, charged, held, cap
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (allocation, uid) JOIN user_sum USING (allocation, uid)

-- name: projects
SELECT id, gname, gid, account, parent, removed FROM project
WHERE id = ANY ($1::bigint[]) OR gname = ANY ($2::text[]) OR gid = ANY ($3::bigint[]) OR account = ANY ($4::text[])
ORDER BY id

-- name: members
SELECT project, uid, role
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (project, uid) JOIN member USING (project, uid)

-- name: entry_ids
-- For a batch that locks the registry: drawn after that, the last of its locks.
SELECT nextval('entry_id_seq') FROM generate_series(1, $1::int)

-- name: next_ids
-- For a dry run: the numbers that would be drawn next, of which none is drawn.
SELECT entry.last_value + entry.is_called::int, allocation.last_value + allocation.is_called::int,
       project.last_value + project.is_called::int, token.last_value + token.is_called::int
FROM entry_id_seq AS entry, allocation_id_seq AS allocation, project_id_seq AS project, token_id_seq AS token

-- name: allocation_id
SELECT nextval('allocation_id_seq')

-- name: project_id
SELECT nextval('project_id_seq')

-- name: token_id
SELECT nextval('token_id_seq')

-- name: write
-- Everything that a batch of holds and charges changes, in one statement.
WITH
sums AS (
    UPDATE allocation
    SET deposited = new.deposited, charged = new.charged, held = new.held, overrun = new.overrun, seq = new.seq, link = new.link
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
         AS new (id, deposited, charged, held, overrun, seq, link)
    WHERE allocation.id = new.id
),
users AS (
    INSERT INTO user_sum (allocation, uid, charged, held, cap)
    SELECT * FROM unnest($8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
    ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held, cap = excluded.cap
),
changed_runs AS (
    UPDATE run
    SET state = new.state, held = new.held, charged = new.charged, written_off = new.written_off, refunded = new.refunded,
        until_at = new.until_at, ended_at = new.ended_at, outcome = new.outcome, elapsed_seconds = new.elapsed_seconds,
        set_by = new.set_by, name = new.name, qos = new.qos, nodes = new.nodes, cpus = new.cpus, tres = new.tres,
        limit_seconds = new.limit_seconds, exit_status = new.exit_status, cpu_seconds = new.cpu_seconds,
        occupied = new.occupied
    FROM unnest($13::bigint[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[],
                $21::text[], $22::bigint[], $23::bigint[], $24::text[], $25::text[], $26::bigint[], $27::bigint[], $28::text[], $29::bigint[],
                $30::bigint[], $31::bigint[], $32::bigint[])
         AS new (id, state, held, charged, written_off, refunded, until_at, ended_at, outcome, elapsed_seconds, set_by,
                 name, qos, nodes, cpus, tres, limit_seconds, exit_status, cpu_seconds, occupied)
    WHERE run.id = new.id
),
new_runs AS (
    INSERT INTO run (id, cluster, job_id, submitted, restart, project, allocation, owner, partition, state, held, charged, written_off,
                     refunded, start_at, until_at, ended_at, outcome, elapsed_seconds, set_by,
                     name, qos, nodes, cpus, tres, limit_seconds, exit_status, cpu_seconds, occupied)
    SELECT * FROM unnest($33::bigint[], $34::text[], $35::bigint[], $36::bigint[], $37::bigint[], $38::bigint[], $39::bigint[],
                         $40::bigint[], $41::text[], $42::text[], $43::bigint[], $44::bigint[], $45::bigint[], $46::bigint[],
                         $47::bigint[], $48::bigint[], $49::bigint[], $50::text[], $51::bigint[], $52::bigint[], $53::text[], $54::text[],
                         $55::bigint[], $56::bigint[], $57::text[], $58::bigint[], $59::bigint[], $60::bigint[], $61::bigint[])
)
INSERT INTO journal (id, allocation, seq, at, kind, amount, run, owner, actor, acting_as, key, digest, deposited, charged, held,
                     credit_limit, overrun, comment, details, link)
SELECT * FROM unnest($62::bigint[], $63::bigint[], $64::bigint[], $65::bigint[], $66::text[], $67::bigint[], $68::bigint[],
                     $69::bigint[], $70::bigint[], $71::bigint[], $72::text[], $73::bytea[], $74::bigint[], $75::bigint[],
                     $76::bigint[], $77::bigint[], $78::bigint[], $79::text[], $80::text[], $81::bytea[])

-- name: spend
-- Forgets a few expired nonces on the way. A nonce that expired may be spent again.
WITH expired AS (
    DELETE FROM nonce
    WHERE nonce IN (SELECT nonce FROM nonce WHERE expires_at <= $4 AND nonce <> $1 LIMIT 100 FOR UPDATE SKIP LOCKED)
)
INSERT INTO nonce (nonce, uid, expires_at) VALUES ($1, $2, $3)
ON CONFLICT (nonce) DO UPDATE SET uid = excluded.uid, expires_at = excluded.expires_at WHERE nonce.expires_at <= $4
RETURNING uid
