-- The statements of a batch on SQLite. Those that read take rows as JSON, so that a batch of any size is one statement;
-- those that write are executed once for each row. Columns come in the order of the tables (fairbank.store.schema).

-- name: allocations
-- Those named by number, and those that a filter takes.
SELECT id, project, resource, category, start_at, end_at, state, shared, partition, reservation,
       credit_limit, deposited, charged, held, overrun, seq, link
FROM allocation
WHERE id IN (
    SELECT json_extract(value, '$[0]') FROM json_each(?)
    UNION ALL
    SELECT allocation.id
    FROM json_each(?) AS wanted
    CROSS JOIN allocation
        ON allocation.project = json_extract(wanted.value, '$[0]') AND allocation.resource = json_extract(wanted.value, '$[1]')
        AND allocation.end_at > json_extract(wanted.value, '$[2]') AND allocation.start_at <= json_extract(wanted.value, '$[3]')
        AND (json_extract(wanted.value, '$[4]') OR allocation.shared)
)
ORDER BY id

-- name: registry
SELECT seq, link FROM registry

-- name: runs
-- All runs of the jobs with these numbers: the few too many cost less than taking four parts of each key out of JSON.
SELECT run.id, run.cluster, run.job_id, run.submitted, run.restart, run.project, run.allocation, run.owner, run.partition,
       run.state, run.held, run.charged, run.written_off, run.refunded, run.start_at, run.until_at, run.ended_at, run.outcome, run.elapsed_seconds,
       run.set_by, run.name, run.qos, run.nodes, run.cpus, run.tres, run.limit_seconds, run.exit_status, run.cpu_seconds,
       run.occupied
FROM json_each(?) AS wanted CROSS JOIN run ON run.job_id = wanted.value

-- name: entries_by_key
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM json_each(?) AS wanted
CROSS JOIN journal ON journal.actor = json_extract(wanted.value, '$[0]') AND journal.key = json_extract(wanted.value, '$[1]')

-- name: entries_by_id
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM json_each(?) AS wanted CROSS JOIN journal ON journal.id = json_extract(wanted.value, '$[0]')

-- name: undoing_entries
-- The entries that took back those wanted: in the same journal, after them.
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM json_each(?) AS wanted
CROSS JOIN journal AS undone ON undone.id = json_extract(wanted.value, '$[0]')
CROSS JOIN journal ON journal.allocation = undone.allocation AND journal.seq > undone.seq
WHERE journal.kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member', 'open')
  AND journal.details LIKE '%"undoes":' || undone.id || '}'

-- name: entries_of_terms
-- All entries about the terms of an allocation (-1), or about a user's cap in it; in the registry (0) about a user's roles.
SELECT journal.id, journal.allocation, journal.seq, journal.at, journal.kind, journal.amount, journal.run, journal.owner, journal.actor,
       journal.acting_as, journal.key, journal.digest, journal.deposited, journal.charged, journal.held, journal.credit_limit,
       journal.overrun, journal.comment, journal.details, journal.link
FROM json_each(?) AS wanted
CROSS JOIN journal ON journal.allocation = json_extract(wanted.value, '$[0]')
WHERE journal.kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member', 'open')
  AND ((journal.kind IN ('open', 'terms') AND json_extract(wanted.value, '$[1]') = -1)
       OR (journal.kind IN ('cap', 'member') AND journal.owner = json_extract(wanted.value, '$[1]')))

-- name: users
SELECT user_sum.allocation, user_sum.uid, user_sum.charged, user_sum.held, user_sum.cap
FROM json_each(?) AS wanted
CROSS JOIN user_sum
    ON user_sum.allocation = json_extract(wanted.value, '$[0]') AND user_sum.uid = json_extract(wanted.value, '$[1]')

-- name: projects
SELECT id, gname, gid, account, parent, removed FROM project
WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?)) OR gname IN (SELECT json_extract(value, '$[0]') FROM json_each(?))
   OR gid IN (SELECT json_extract(value, '$[0]') FROM json_each(?)) OR account IN (SELECT json_extract(value, '$[0]') FROM json_each(?))
ORDER BY id

-- name: members
SELECT member.project, member.uid, member.role
FROM json_each(?) AS wanted
CROSS JOIN member ON member.project = json_extract(wanted.value, '$[0]') AND member.uid = json_extract(wanted.value, '$[1]')

-- name: last_ids
SELECT (SELECT max(id) FROM journal), (SELECT max(id) FROM allocation), (SELECT max(id) FROM project),
       (SELECT max(id) FROM token)

-- name: write_sums
UPDATE allocation SET deposited = ?, charged = ?, held = ?, overrun = ?, seq = ?, link = ? WHERE id = ?

-- name: write_users
INSERT INTO user_sum (allocation, uid, charged, held, cap) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held, cap = excluded.cap

-- name: write_changed_runs
UPDATE run
SET state = ?, held = ?, charged = ?, written_off = ?, refunded = ?, until_at = ?, ended_at = ?, outcome = ?, elapsed_seconds = ?,
    set_by = ?, name = ?, qos = ?, nodes = ?, cpus = ?, tres = ?, limit_seconds = ?, exit_status = ?, cpu_seconds = ?,
    occupied = ?
WHERE id = ?

-- name: write_new_runs
INSERT INTO run (id, cluster, job_id, submitted, restart, project, allocation, owner, partition, state, held, charged, written_off,
                 refunded, start_at, until_at, ended_at, outcome, elapsed_seconds, set_by, name, qos, nodes, cpus, tres,
                 limit_seconds, exit_status, cpu_seconds, occupied)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: write_entries
INSERT INTO journal (id, allocation, seq, at, kind, amount, run, owner, actor, acting_as, key, digest, deposited, charged, held,
                     credit_limit, overrun, comment, details, link)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: forget
DELETE FROM nonce WHERE expires_at <= ?

-- name: spend
INSERT INTO nonce (nonce, uid, expires_at) VALUES (?, ?, ?) ON CONFLICT (nonce) DO NOTHING RETURNING uid
