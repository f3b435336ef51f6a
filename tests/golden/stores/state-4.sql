PRAGMA application_id = 1180844884;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE rows (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))
    WITHOUT ROWID;
CREATE TABLE runs (number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE,
    job INTEGER NOT NULL, array INTEGER, ended INTEGER NOT NULL, record BLOB NOT NULL);
CREATE INDEX runs_by_job ON runs (job);
CREATE INDEX runs_by_array ON runs (array);
CREATE INDEX runs_by_end ON runs (ended);
CREATE TABLE outcomes (run TEXT PRIMARY KEY, outcome BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE contents (digest TEXT PRIMARY KEY, stored INTEGER NOT NULL,
    content BLOB NOT NULL);
CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT, since_boot INTEGER, mono INTEGER);
CREATE TABLE ended_steps (step TEXT PRIMARY KEY, run TEXT NOT NULL, record BLOB NOT NULL)
    WITHOUT ROWID;
CREATE INDEX steps_by_run ON ended_steps (run);
CREATE TABLE step_usages (step TEXT, node TEXT, usage BLOB NOT NULL, PRIMARY KEY (step, node))
    WITHOUT ROWID;
INSERT INTO rows VALUES('accounts','bio',CAST('{"number": 1, "users": ["alice"]}' AS BLOB));
INSERT INTO rows VALUES('counters','change',CAST('29' AS BLOB));
INSERT INTO rows VALUES('counters','job',CAST('6' AS BLOB));
INSERT INTO rows VALUES('counters','message',CAST('5' AS BLOB));
INSERT INTO rows VALUES('counters','priority',CAST('2147483642' AS BLOB));
INSERT INTO rows VALUES('counters','usage_reset',CAST('1700000000' AS BLOB));
INSERT INTO rows VALUES('counters','usage_tick',CAST('1700000300' AS BLOB));
INSERT INTO rows VALUES('jobs','2',CAST('{"request": {"number": 2, "user": "alice", "account": "bio", "qos": "night", "partitions": ["main"], "wanted": {"nodes": 2, "cpus_per_task": 2, "memory_per_node": 1}, "submitted": 1700000060, "limit": 3600, "tres": {"cpu": 4, "node": 2}}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}, "state": "RUNNING", "run": {"run": ["lab", 2, 1700000060, 0], "allocation": {"partition": "main", "grants": [{"binding": ["n0", [0, 1], [], 1], "cpus": 2, "memory": 1}, {"binding": ["n1", [0, 1], [], 1], "cpus": 2, "memory": 1}]}, "allocated": [1700000060, 110], "is_allowed": true, "started": [1700000060, 110], "left": ["n0", "n1"]}}' AS BLOB));
INSERT INTO rows VALUES('jobs','3',CAST('{"request": {"number": 3, "array": 3, "user": "alice", "account": "bio", "qos": "normal", "partitions": ["main"], "wanted": {"memory_per_node": 1}, "submitted": 1700000360, "limit": 600, "tres": {"cpu": 1, "node": 1}, "throttle": 1}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}, "tasks": [0, 1, 2], "dependencies": {"text": "afterok:2(unfulfilled)", "items": [["afterok", 2, null, false, 0, "unfulfilled"]]}}' AS BLOB));
INSERT INTO rows VALUES('jobs','4',CAST('{"request": {"number": 4, "user": "alice", "account": "bio", "qos": "normal", "partitions": ["main"], "wanted": {"memory_per_node": 1}, "submitted": 1700000360, "limit": 60, "tres": {"cpu": 1, "node": 1}, "licenses": {"ansys": 2}}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}, "held_by": "JobHeldUser"}' AS BLOB));
INSERT INTO rows VALUES('jobs','5',CAST('{"request": {"number": 5, "user": "alice", "account": "bio", "qos": "normal", "partitions": ["main"], "wanted": {"memory_per_node": 1}, "submitted": 1700000360, "limit": 300, "tres": {"cpu": 1, "node": 1}}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}, "state": "RUNNING CONFIGURING", "reason": "Prolog", "run": {"run": ["lab", 5, 1700000360, 0], "allocation": {"partition": "main", "grants": [{"binding": ["n0", [2], [], 1], "cpus": 1, "memory": 1}]}, "allocated": [1700000360, 410], "left": ["n0"]}}' AS BLOB));
INSERT INTO rows VALUES('messages','4',CAST('{"number": 4, "kind": "prolog", "run": {"run": ["lab", 5, 1700000360, 0], "allocation": {"partition": "main", "grants": [{"binding": ["n0", [2], [], 1], "cpus": 1, "memory": 1}]}, "allocated": [1700000360, 410], "left": ["n0"]}, "request": {"number": 5, "user": "alice", "account": "bio", "qos": "normal", "partitions": ["main"], "wanted": {"memory_per_node": 1}, "submitted": 1700000360, "limit": 300, "tres": {"cpu": 1, "node": 1}}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}}' AS BLOB));
INSERT INTO rows VALUES('nodes','n0',CAST('{"condition": "UP", "boot": "boot 1"}' AS BLOB));
INSERT INTO rows VALUES('nodes','n1',CAST('{"condition": "UP", "boot": "boot 1"}' AS BLOB));
INSERT INTO rows VALUES('partitions','short',CAST('{"name": "short", "max_seconds": 600}' AS BLOB));
INSERT INTO rows VALUES('reservations','maint',CAST('{"name": "maint", "nodes": ["n0"], "begin": 1700086400, "end": 1700090000, "licenses": {"ansys": 1}}' AS BLOB));
INSERT INTO rows VALUES('usage','bio alice ',CAST('{"billing": 1019.7112912352777, "wall": 299.9092641261784, "tres": {"cpu": 1019.7112912352777, "mem": 539.8432731625448, "node": 539.8432731625448, "billing": 1019.7112912352777}}' AS BLOB));
INSERT INTO runs VALUES(1,'lab/1@1700000000.0',1,NULL,1700000060,CAST('{"identity": ["lab", 1, 1700000000, 0], "request": {"number": 1, "user": "alice", "account": "bio", "qos": "normal", "partitions": ["main"], "wanted": {"memory_per_node": 1}, "submitted": 1700000000, "limit": 600, "tres": {"cpu": 1, "node": 1}, "licenses": {"ansys": 3}}, "submission": {"name": "train", "uid": 1000, "gid": 1000, "script": "digest"}, "state": "COMPLETED", "reason": "None", "ended": 1700000060, "run": {"run": ["lab", 1, 1700000000, 0], "allocation": {"partition": "main", "grants": [{"binding": ["n0", [0], [], 1], "cpus": 1, "memory": 1}]}, "allocated": [1700000000, 50], "is_allowed": true, "started": [1700000000, 50], "ended": [1700000060, 110], "end": "COMPLETED", "left": ["n0"]}}' AS BLOB));
INSERT INTO outcomes VALUES('lab/1@1700000000.0',CAST('{"cause":"exit","status":0,"text":"","ended":1700000060.5,"elapsed_seconds":60.5,"usage":{"cpu_seconds":58.25,"resident_max_kib":4096,"virtual_max_kib":8192}}' AS BLOB));
COMMIT;
