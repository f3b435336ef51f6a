SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA public;
COMMENT ON EXTENSION btree_gist IS 'support for indexing common datatypes in GiST';
CREATE FUNCTION public.fairbank_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        RAISE EXCEPTION 'rows of % are never changed or deleted: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
    END
    $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.journal (
    id bigint NOT NULL,
    allocation bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    amount bigint NOT NULL,
    run bigint,
    owner bigint,
    actor bigint NOT NULL,
    acting_as bigint,
    key text,
    digest bytea,
    deposited bigint NOT NULL,
    charged bigint NOT NULL,
    held bigint NOT NULL,
    credit_limit bigint NOT NULL,
    overrun bigint NOT NULL,
    comment text,
    details text,
    link bytea NOT NULL
);
CREATE VIEW public.credits AS
 SELECT journal.id AS activity_id,
    journal.allocation AS allocation_id,
        CASE
            WHEN (journal.kind = ANY (ARRAY['withdraw'::text, 'transfer-out'::text])) THEN (- journal.amount)
            ELSE journal.amount
        END AS amount,
    journal.comment AS comments
   FROM public.journal
  WHERE (journal.kind = ANY (ARRAY['deposit'::text, 'withdraw'::text, 'transfer-in'::text, 'transfer-out'::text]));
CREATE TABLE public.run (
    id bigint NOT NULL,
    cluster text NOT NULL,
    job_id bigint NOT NULL,
    submitted bigint NOT NULL,
    restart bigint NOT NULL,
    project bigint NOT NULL,
    allocation bigint NOT NULL,
    owner bigint NOT NULL,
    partition text NOT NULL,
    state text NOT NULL,
    held bigint NOT NULL,
    charged bigint NOT NULL,
    written_off bigint NOT NULL,
    refunded bigint NOT NULL,
    start_at bigint NOT NULL,
    until_at bigint NOT NULL,
    ended_at bigint,
    outcome text,
    elapsed_seconds bigint,
    set_by bigint NOT NULL,
    name text,
    qos text,
    nodes bigint,
    cpus bigint,
    tres text,
    limit_seconds bigint,
    exit_status bigint,
    cpu_seconds bigint,
    occupied bigint,
    CONSTRAINT run_resolved_once CHECK (((state = 'held'::text) = ((ended_at IS NULL) AND (state <> 'lapsed'::text)))),
    CONSTRAINT run_sums CHECK (((held >= 0) AND (charged >= 0) AND (refunded >= 0) AND (refunded <= charged)))
);
CREATE TABLE public.user_sum (
    allocation bigint NOT NULL,
    uid bigint NOT NULL,
    charged bigint NOT NULL,
    held bigint NOT NULL,
    cap bigint,
    CONSTRAINT user_sum_sums CHECK (((charged >= 0) AND (held >= 0)))
)
WITH (fillfactor='50');
CREATE VIEW public.debits AS
 SELECT ( SELECT max(run.id) AS max
           FROM public.run
          WHERE ((run.allocation = user_sum.allocation) AND (run.owner = user_sum.uid) AND (run.state = 'charged'::text))) AS activity_id,
    user_sum.allocation AS allocation_id,
    user_sum.charged AS amount,
    NULL::text AS comments,
    user_sum.uid AS owner_uid
   FROM public.user_sum
  WHERE (user_sum.charged > 0);
CREATE VIEW public.failures AS
 SELECT journal.id AS activity_id,
    NULLIF(journal.allocation, 0) AS allocation_id,
    journal.amount,
    COALESCE(journal.comment, ((journal.details)::json ->> 'reason'::text)) AS comments,
    (split_part(split_part(((journal.details)::json ->> 'run'::text), '/'::text, 2), '@'::text, 1))::bigint AS job_id,
    journal.owner AS owner_uid
   FROM public.journal
  WHERE (journal.kind = 'refusal'::text);
CREATE VIEW public.predebits AS
 SELECT run.id AS activity_id,
    run.allocation AS allocation_id,
    run.held AS amount,
    journal.comment AS comments,
    run.job_id,
        CASE run.state
            WHEN 'held'::text THEN 'executing'::text
            ELSE 'completed'::text
        END AS status,
    run.owner AS owner_uid
   FROM (public.run
     LEFT JOIN public.journal ON ((journal.id = run.id)));
CREATE VIEW public.activity AS
 SELECT credits.activity_id,
    credits.allocation_id,
    credits.amount,
    credits.comments
   FROM public.credits
UNION ALL
 SELECT predebits.activity_id,
    predebits.allocation_id,
    predebits.amount,
    predebits.comments
   FROM public.predebits
  WHERE (predebits.status = 'executing'::text)
UNION ALL
 SELECT debits.activity_id,
    debits.allocation_id,
    debits.amount,
    debits.comments
   FROM public.debits
UNION ALL
 SELECT failures.activity_id,
    failures.allocation_id,
    failures.amount,
    failures.comments
   FROM public.failures;
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.allocation (
    id bigint NOT NULL,
    project bigint NOT NULL,
    resource text NOT NULL,
    category text NOT NULL,
    start_at bigint NOT NULL,
    end_at bigint NOT NULL,
    state text NOT NULL,
    shared boolean NOT NULL,
    partition text,
    reservation text,
    credit_limit bigint NOT NULL,
    deposited bigint NOT NULL,
    charged bigint NOT NULL,
    held bigint NOT NULL,
    overrun bigint NOT NULL,
    seq bigint NOT NULL,
    link bytea NOT NULL,
    CONSTRAINT allocation_not_overdrawn CHECK ((((deposited + credit_limit) + overrun) >= (charged + held))),
    CONSTRAINT allocation_period CHECK ((start_at < end_at)),
    CONSTRAINT allocation_sums CHECK (((deposited >= 0) AND (charged >= 0) AND (held >= 0) AND (credit_limit >= 0) AND (overrun >= 0)))
)
WITH (fillfactor='50');
CREATE SEQUENCE public.allocation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.allocation_id_seq OWNED BY public.allocation.id;
CREATE VIEW public.allocations AS
 SELECT allocation.id AS allocation_id,
    allocation.project AS project_id,
    allocation.category,
    allocation.resource,
    (to_timestamp((allocation.start_at)::double precision) AT TIME ZONE 'UTC'::text) AS start_date,
    (to_timestamp((allocation.end_at)::double precision) AT TIME ZONE 'UTC'::text) AS end_date
   FROM public.allocation
  WHERE (allocation.state <> 'removed'::text);
CREATE VIEW public.balances AS
 SELECT allocation.id AS allocation_id,
    allocation.deposited AS credit,
    allocation.held AS predebit,
    allocation.charged AS debit,
    ((allocation.deposited - allocation.held) - allocation.charged) AS balance
   FROM public.allocation
  WHERE (allocation.state <> 'removed'::text);
CREATE SEQUENCE public.entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.member (
    project bigint NOT NULL,
    uid bigint NOT NULL,
    role text NOT NULL
);
CREATE TABLE public.nonce (
    nonce bytea NOT NULL,
    uid bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.project (
    id bigint NOT NULL,
    gname text NOT NULL,
    gid bigint NOT NULL,
    account text NOT NULL,
    parent bigint,
    removed boolean NOT NULL
);
CREATE SEQUENCE public.project_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.project_id_seq OWNED BY public.project.id;
CREATE VIEW public.projects AS
 SELECT project.id AS project_id,
    project.gname,
    project.gid,
    project.account
   FROM public.project;
CREATE TABLE public.registry (
    id bigint NOT NULL,
    seq bigint NOT NULL,
    link bytea NOT NULL,
    CONSTRAINT registry_is_one CHECK ((id = 0))
);
CREATE SEQUENCE public.registry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.registry_id_seq OWNED BY public.registry.id;
CREATE TABLE public.share_figure (
    cluster text NOT NULL,
    day bigint NOT NULL,
    account text NOT NULL,
    login text NOT NULL,
    partition text NOT NULL,
    at bigint NOT NULL,
    shares bigint,
    norm_shares double precision NOT NULL,
    usage double precision NOT NULL,
    effective double precision,
    level double precision,
    factor double precision
);
CREATE TABLE public.token (
    id bigint NOT NULL,
    digest bytea NOT NULL,
    uid bigint NOT NULL,
    label text NOT NULL,
    scopes text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint,
    parent bigint
);
CREATE SEQUENCE public.token_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.token_id_seq OWNED BY public.token.id;
CREATE TABLE public.usage_head (
    allocation bigint NOT NULL,
    seq bigint NOT NULL
);
CREATE TABLE public.usage_sum (
    days bigint NOT NULL,
    block bigint NOT NULL,
    allocation bigint NOT NULL,
    project bigint NOT NULL,
    cluster text NOT NULL,
    owner bigint NOT NULL,
    partition text NOT NULL,
    qos text NOT NULL,
    runs bigint NOT NULL,
    failed bigint NOT NULL,
    charged bigint NOT NULL,
    elapsed bigint NOT NULL,
    core bigint NOT NULL,
    gpu bigint NOT NULL,
    waited bigint NOT NULL,
    busy bigint NOT NULL,
    given bigint NOT NULL,
    wasted bigint NOT NULL,
    occupied bigint NOT NULL,
    without_size bigint NOT NULL,
    early bigint NOT NULL,
    lowest_exit bigint,
    highest_exit bigint
);
ALTER TABLE ONLY public.allocation ALTER COLUMN id SET DEFAULT nextval('public.allocation_id_seq'::regclass);
ALTER TABLE ONLY public.project ALTER COLUMN id SET DEFAULT nextval('public.project_id_seq'::regclass);
ALTER TABLE ONLY public.registry ALTER COLUMN id SET DEFAULT nextval('public.registry_id_seq'::regclass);
ALTER TABLE ONLY public.token ALTER COLUMN id SET DEFAULT nextval('public.token_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0001');
INSERT INTO public.allocation VALUES (2, 2, 'cpu', 'research', 1758464000, 1821536000, 'active', false, NULL, NULL, 0, 9700, 650, 2705, 0, 19, '\x3fc4b978d1f0d8cc30187262b44ec8435bf91c0d875369d9b027953e7357a667');
INSERT INTO public.allocation VALUES (1, 1, 'cpu', 'research', 1758464000, 1821536000, 'active', true, NULL, NULL, 600, 5710, 33, 0, 0, 7, '\xe9e2f0079af5698186a4a40c3173122dcf05bf3524574b9957796171039b6fad');
INSERT INTO public.journal VALUES (1, 0, 1, 1790000000, 'project', 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":1,"gname":"college","gid":4000,"account":"college","parent":null}', '\x3561184bf7682c99886776742e74e30949a883c2e5c6ad5158e5383190724517');
INSERT INTO public.journal VALUES (3, 0, 2, 1790000400, 'project', 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":2,"gname":"physics","gid":4001,"account":"phys","parent":1}', '\xc174a658e548bc6683d9ba24bf170f52e86d0a0044871265454951bf40e6f63e');
INSERT INTO public.journal VALUES (5, 0, 3, 1790000800, 'member', 0, NULL, 1001, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":1,"uid":1001,"role":"pi"}', '\xc0797083f933ca7a70a8632c4a42be9f23669e371307d87c54a9eaa6d9f97736');
INSERT INTO public.journal VALUES (7, 0, 4, 1790001200, 'member', 0, NULL, 1002, 0, 1001, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":2,"uid":1002,"role":"member"}', '\xd3a42e0def791e8beee4c56bdd49991329957b9e4a6b540d68a9b3d3d09cc213');
INSERT INTO public.journal VALUES (9, 0, 5, 1790001600, 'member', 0, NULL, 1003, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":2,"uid":1003,"role":"member"}', '\x8408b885f439abab83e1eceeec3212945efe7974e391cc504928f06df3eddece');
INSERT INTO public.journal VALUES (11, 0, 6, 1790002000, 'member', 0, NULL, 1003, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"project":2,"uid":1003,"role":null}', '\xa66f2861ed7e1296494db39d9d92d89ef5e3dd9db1c3e24f11ba8f8a41ed7e9e');
INSERT INTO public.journal VALUES (13, 0, 7, 1790002400, 'note', 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"note":"somebody acted as user 1002"}', '\x207221fb9661505edc3bf6925c98dfb020dd361d71b420b65e41c696dfde3211');
INSERT INTO public.journal VALUES (15, 0, 8, 1790002800, 'token', 0, NULL, 1002, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"token":1,"digest":"6c6170746f706c6170746f706c6170746f706c6170746f70","uid":1002,"label":"laptop","scopes":["read"],"created":1790002800,"expires":1821536000,"revoked":null,"parent":null}', '\x931c3f8836d266f778da0a4cce8d5bc1f346858bda22c2fca84ccd16fcf5da75');
INSERT INTO public.journal VALUES (17, 0, 9, 1790003200, 'token', 0, NULL, 1002, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"token":2,"digest":"706f7274616c706f7274616c706f7274616c706f7274616c","uid":1002,"label":"portal","scopes":["read"],"created":1790003200,"expires":1821536000,"revoked":null,"parent":null}', '\xbe77fcddc75da7d9fb7ef90f8debeb5284f14879685f63706c0fb7306d4cc78d');
INSERT INTO public.journal VALUES (19, 0, 10, 1790003600, 'token', 0, NULL, 1002, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"token":3,"digest":"6c6f63616c6c6f63616c6c6f63616c6c6f63616c","uid":1002,"label":"local","scopes":["agent:local","write"],"created":1790003600,"expires":1821536000,"revoked":null,"parent":null}', '\x72e46af901ac7703785d39af4a7c57ce957ce2f6d9db5b20a74029a165a32fbe');
INSERT INTO public.journal VALUES (21, 0, 11, 1790004000, 'token', 0, NULL, 1002, 0, 1001, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"token":1,"digest":"6c6170746f706c6170746f706c6170746f706c6170746f70","uid":1002,"label":"laptop","scopes":["read"],"created":1790002800,"expires":1821536000,"revoked":1790004000,"parent":null}', '\x7ca6a869d08fe4bfd909456bcbbde568f7ba923993a4c819fdc1f92ff47bf285');
INSERT INTO public.journal VALUES (25, 1, 1, 1790004800, 'open', 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 'committee', '{"project":1,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}', '\x5637dd00194be67a822c4a4bcf7f3e4a54b9dc660bf068066c9127a846e9ccbe');
INSERT INTO public.journal VALUES (26, 1, 2, 1790004800, 'deposit', 6000, NULL, NULL, 0, NULL, NULL, NULL, 6000, 0, 0, 0, 0, 'committee', NULL, '\x21ab46035e30972a28ca974733f47e60fd63e9c3171c4af7ff9d7011fa3e154a');
INSERT INTO public.journal VALUES (27, 2, 1, 1790005200, 'open', 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 'committee', '{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}', '\x924211e89d18a2c9a5a09a03066d4e9afea340a8cd9e47fb1b05e14eb140f8f5');
INSERT INTO public.journal VALUES (28, 2, 2, 1790005200, 'deposit', 9000, NULL, NULL, 0, NULL, NULL, NULL, 9000, 0, 0, 0, 0, 'committee', NULL, '\x8a122c51a0a567338e0ecd15c8f33743e765a459858d3c113a9c4c4218798679');
INSERT INTO public.journal VALUES (29, 1, 3, 1790005600, 'deposit', 500, NULL, NULL, 0, NULL, 'deposit', '\x2eac0ac6c9be9f5b5c4a563d35d67a11', 6500, 0, 0, 0, 0, 'more', NULL, '\xd38c1990366d0f84672cf3e43edbfdb7d60777aded97758d6c19e54469d3e8b7');
INSERT INTO public.journal VALUES (31, 1, 4, 1790006000, 'withdraw', 90, NULL, NULL, 0, NULL, NULL, NULL, 6410, 0, 0, 0, 0, 'less', NULL, '\x890a682fd92d4998884927293d253c498d5a9121d057028c008006129a90714a');
INSERT INTO public.journal VALUES (33, 1, 5, 1790006400, 'transfer-out', 700, NULL, NULL, 0, NULL, 'transfer', '\xe95a03132dca991ea17cafcbc8ec5084', 5710, 0, 0, 0, 0, NULL, '{"to":2}', '\x4c78b3278f2adf79089ae222102faf15bc469e30bcfeea7ea82a36acebc747e2');
INSERT INTO public.journal VALUES (34, 2, 3, 1790006400, 'transfer-in', 700, NULL, NULL, 0, NULL, NULL, NULL, 9700, 0, 0, 0, 0, NULL, '{"from":1}', '\x538a76a209279978669bb299ca25340c99c221e54e7f5c010c39e44f2f880b1b');
INSERT INTO public.journal VALUES (35, 1, 6, 1790006800, 'terms', 0, NULL, NULL, 0, 1001, NULL, NULL, 5710, 0, 0, 600, 0, NULL, '{"project":1,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":true,"state":"active"}', '\x04603f3eeb5af53053c8bbc1f111b44ac0a71bb7ab7e3c36ec4665b646f4892e');
INSERT INTO public.journal VALUES (37, 2, 4, 1790007200, 'terms', 0, NULL, NULL, 0, NULL, NULL, NULL, 9700, 0, 0, 0, 0, NULL, '{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"frozen"}', '\xd9728bb6d2c44582e9341b4c329089fbb60a0b85fa24a266f4b7281c4a83b56e');
INSERT INTO public.journal VALUES (39, 2, 5, 1790007600, 'terms', 0, NULL, NULL, 0, NULL, NULL, NULL, 9700, 0, 0, 0, 0, NULL, '{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}', '\x3f5fdafc82a302fbfd397c65398bc6c37a1bf0189dd6dfb395da792ee1c851ad');
INSERT INTO public.journal VALUES (41, 2, 6, 1790008000, 'cap', 5000, NULL, 1002, 0, NULL, NULL, NULL, 9700, 0, 0, 0, 0, NULL, '{"cap":5000}', '\xfc65b5ea514f1c0515513f051ae1a873e0b382949ff97a2bfb76a2550ea2c475');
INSERT INTO public.journal VALUES (43, 2, 7, 1790008400, 'hold', 1201, 43, 1003, 0, NULL, 'hold.1', '\xabb3659b21db578e4a4ba614d9a0622d', 9700, 0, 1201, 0, 0, NULL, '{"run":["local",1,1789999901,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 1","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}', '\xe00aadc1343a4072b3f44fbfd8a5f23b500405e635b62bd15f3963d1a3fb4ec6');
INSERT INTO public.journal VALUES (45, 2, 8, 1790008800, 'hold', 1202, 45, 1002, 0, NULL, 'hold.2', '\xe52c5c7d5ef55de09e14022c5558f133', 9700, 0, 2403, 0, 0, NULL, '{"run":["local",2,1789999902,0],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 2","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}', '\x86ac6eec46ee99fc0a645800f924afab09c57e1b3fdbb5b543b30bd86241ea48');
INSERT INTO public.journal VALUES (47, 2, 9, 1790009200, 'hold', 1203, 47, 1003, 0, NULL, 'hold.3', '\x1018e4106945420d20ced23272a06247', 9700, 0, 3606, 0, 0, NULL, '{"run":["local",3,1789999903,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 3","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}', '\xe5be368bfe496915b3d2921d6d7de2eeabc00b36efaf851f9de7bb9d699f10df');
INSERT INTO public.journal VALUES (49, 2, 10, 1790009600, 'hold', 1204, 49, 1002, 0, 1001, 'hold.4', '\xeacc843b17d92c8c0de824876afb94a0', 9700, 0, 4810, 0, 0, NULL, '{"run":["local",4,1789999904,0],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 4","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}', '\xfa4a5b7c2c07eefda3f01c41c83f0f138db6faa2855c1a45d65a624d64b44d14');
INSERT INTO public.journal VALUES (51, 2, 11, 1790010000, 'hold', 1205, 51, 1003, 0, NULL, 'hold.5', '\x0d22dc3529fdb017d1cd0fc96a151389', 9700, 0, 6015, 0, 0, NULL, '{"run":["local",5,1789999905,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 5","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}', '\x2238a61415c4d5ba77142b0089f0ad56058e46aab5de669e22e690abcf81a4f0');
INSERT INTO public.journal VALUES (53, 2, 12, 1790010400, 'adjust', 299, 43, 1003, 0, NULL, 'adjust', '\x4e38ddc6cca96199108112f828a8048d', 9700, 0, 6314, 0, 0, NULL, '{"until":1790032400}', '\x2fa08ca8d7d1b1bab22f84e658eea5fc88c1188382f807288ccda2b4114d4461');
INSERT INTO public.journal VALUES (55, 2, 13, 1790010800, 'charge', 700, 45, 1002, 0, NULL, NULL, NULL, 9700, 700, 5112, 0, 0, NULL, '{"outcome":"COMPLETED","elapsed_seconds":3600,"ended":1790003600,"written_off":0,"job_details":{"exit_status":0,"cpu_seconds":25200}}', '\x607010f3312c36eb9c48f90480798b523d47c95429b568aabab89293a5233764');
INSERT INTO public.journal VALUES (57, 2, 14, 1790011200, 'release', 1203, 47, 1003, 0, NULL, NULL, NULL, 9700, 700, 3909, 0, 0, NULL, '{"outcome":"NODE_FAIL","elapsed_seconds":60,"ended":1790003600,"written_off":0}', '\x25493dd03f3e9b9ef448e3e511b36f096e8b093100242c541087daa7619f9c62');
INSERT INTO public.journal VALUES (59, 2, 15, 1790011600, 'refund', 100, 45, 1002, 0, NULL, NULL, NULL, 9700, 600, 3909, 0, 0, 'a bad node', NULL, '\x4284fa54a4ea1de3b3a4831b8abc9550c472becdc121fff4711f3200552120d0');
INSERT INTO public.journal VALUES (61, 2, 16, 1790012000, 'lapse', 1204, 49, 1002, 0, NULL, NULL, NULL, 9700, 600, 2705, 0, 0, NULL, NULL, '\x1f1f67cc059dec92f47dfedbee7feaf150f8f7af2769976624143f56b56d149e');
INSERT INTO public.journal VALUES (63, 2, 17, 1790012400, 'refund', 50, 45, 1002, 0, 1001, NULL, NULL, 9700, 550, 2705, 0, 0, 'another one', NULL, '\x1c8945cce5a334f69ed13a69729a7871eccf18b7e89cf056ceabf22381019a06');
INSERT INTO public.journal VALUES (65, 2, 18, 1790012800, 'recharge', 100, 45, 1002, 0, NULL, NULL, NULL, 9700, 650, 2705, 0, 0, 'it was not the node', '{"undoes":59}', '\xae71a53e29bffe2f0693ada0f23b27c9b4777cda06a954a45f8e6a98c56a36a5');
INSERT INTO public.journal VALUES (67, 2, 19, 1790013200, 'refusal', 1000000, NULL, 1003, 0, NULL, 'hold.9', '\x86fe880f1f8b84bba5903655141735ac', 9700, 650, 2705, 0, 0, 'no', '{"reason":"INSUFFICIENT_CREDIT","detail":"none","asked":1000000,"available":6345,"allocation":2,"project":2,"account":null,"resource":"cpu","owner":1003,"run":"local/9@1789999909.1","start":null,"billing":null,"limit_seconds":7200,"observed":false,"entry":null,"facts":{"granted":9700,"charged":650,"held":2705}}', '\x3fc4b978d1f0d8cc30187262b44ec8435bf91c0d875369d9b027953e7357a667');
INSERT INTO public.journal VALUES (71, 0, 12, 1790013600, 'declined', 0, NULL, NULL, 0, NULL, 'nowhere', '\x1ded0c2785c8027d75800627cd1de173', 0, 0, 0, 0, 0, 'no', '{"reason":"UNKNOWN_ALLOCATION","detail":"none","asked":0,"available":0,"allocation":77,"project":null,"account":null,"resource":null,"owner":null,"run":null,"start":null,"billing":null,"limit_seconds":null,"observed":false,"entry":null,"facts":null}', '\xa01db35bb3ccab95f6d9ff8469eec6fdfcc2bd57e97c3fbd5d2b7a8ebb2dde7a');
INSERT INTO public.journal VALUES (73, 1, 7, 1790014000, 'charge', 33, 73, 1002, 0, NULL, NULL, NULL, 5710, 33, 0, 600, 0, NULL, '{"run":["local",8,1789999908,0],"project":1,"partition":"","start":1790000000,"until":1790003600,"outcome":"COMPLETED","elapsed_seconds":120,"ended":1790003600,"written_off":0}', '\xe9e2f0079af5698186a4a40c3173122dcf05bf3524574b9957796171039b6fad');
INSERT INTO public.member VALUES (1, 1001, 'pi');
INSERT INTO public.member VALUES (2, 1002, 'member');
INSERT INTO public.project VALUES (1, 'college', 4000, 'college', NULL, false);
INSERT INTO public.project VALUES (2, 'physics', 4001, 'phys', 1, false);
INSERT INTO public.registry VALUES (0, 12, '\xa01db35bb3ccab95f6d9ff8469eec6fdfcc2bd57e97c3fbd5d2b7a8ebb2dde7a');
INSERT INTO public.run VALUES (51, 'local', 5, 1789999905, 1, 2, 2, 1003, 'cpu', 'held', 1205, 0, 0, 0, 1790000000, 1790007200, NULL, NULL, NULL, 51, 'relax 5', 'normal', 1, 8, 'cpu=8,mem=16G,node=1', 7200, NULL, NULL, NULL);
INSERT INTO public.run VALUES (43, 'local', 1, 1789999901, 1, 2, 2, 1003, 'cpu', 'held', 1500, 0, 0, 0, 1790000000, 1790032400, NULL, NULL, NULL, 53, 'relax 1', 'normal', 1, 8, 'cpu=8,mem=16G,node=1', 7200, NULL, NULL, NULL);
INSERT INTO public.run VALUES (47, 'local', 3, 1789999903, 1, 2, 2, 1003, 'cpu', 'released', 0, 0, 0, 0, 1790000000, 1790007200, 1790003600, 'NODE_FAIL', 60, 57, 'relax 3', 'normal', 1, 8, 'cpu=8,mem=16G,node=1', 7200, NULL, NULL, NULL);
INSERT INTO public.run VALUES (49, 'local', 4, 1789999904, 0, 2, 2, 1002, 'cpu', 'lapsed', 0, 0, 0, 0, 1790000000, 1790007200, NULL, NULL, NULL, 61, 'relax 4', 'normal', 1, 8, 'cpu=8,mem=16G,node=1', 7200, NULL, NULL, NULL);
INSERT INTO public.run VALUES (45, 'local', 2, 1789999902, 0, 2, 2, 1002, 'cpu', 'charged', 0, 700, 0, 50, 1790000000, 1790007200, 1790003600, 'COMPLETED', 3600, 55, 'relax 2', 'normal', 1, 8, 'cpu=8,mem=16G,node=1', 7200, 0, 25200, NULL);
INSERT INTO public.run VALUES (73, 'local', 8, 1789999908, 0, 1, 1, 1002, '', 'charged', 0, 33, 0, 0, 1790000000, 1790003600, 1790003600, 'COMPLETED', 120, 73, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.token VALUES (2, '\x706f7274616c706f7274616c706f7274616c706f7274616c', 1002, 'portal', 'read', 1790003200, 1821536000, NULL, NULL);
INSERT INTO public.token VALUES (3, '\x6c6f63616c6c6f63616c6c6f63616c6c6f63616c', 1002, 'local', 'agent:local write', 1790003600, 1821536000, NULL, NULL);
INSERT INTO public.token VALUES (1, '\x6c6170746f706c6170746f706c6170746f706c6170746f70', 1002, 'laptop', 'read', 1790002800, 1821536000, 1790004000, NULL);
INSERT INTO public.user_sum VALUES (2, 1003, 0, 2705, NULL);
INSERT INTO public.user_sum VALUES (2, 1002, 650, 0, 5000);
INSERT INTO public.user_sum VALUES (1, 1002, 33, 0, NULL);
SELECT pg_catalog.setval('public.allocation_id_seq', 2, true);
SELECT pg_catalog.setval('public.entry_id_seq', 74, true);
SELECT pg_catalog.setval('public.project_id_seq', 2, true);
SELECT pg_catalog.setval('public.registry_id_seq', 1, false);
SELECT pg_catalog.setval('public.token_id_seq', 3, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.allocation
    ADD CONSTRAINT allocation_periods_apart EXCLUDE USING gist (project WITH =, resource WITH =, int8range(start_at, end_at) WITH &&) WHERE ((state <> 'removed'::text));
ALTER TABLE ONLY public.allocation
    ADD CONSTRAINT allocation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_allocation_seq UNIQUE (allocation, seq);
ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_pkey PRIMARY KEY (project, uid);
ALTER TABLE ONLY public.nonce
    ADD CONSTRAINT nonce_pkey PRIMARY KEY (nonce);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_account_key UNIQUE (account);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_gid_key UNIQUE (gid);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_gname_key UNIQUE (gname);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.registry
    ADD CONSTRAINT registry_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_identity UNIQUE (job_id, submitted, restart, cluster);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.share_figure
    ADD CONSTRAINT share_figure_pkey PRIMARY KEY (cluster, day, account, login, partition);
ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.usage_head
    ADD CONSTRAINT usage_head_pkey PRIMARY KEY (allocation);
ALTER TABLE ONLY public.usage_sum
    ADD CONSTRAINT usage_sum_pkey PRIMARY KEY (days, block, allocation, project, cluster, owner, partition, qos);
ALTER TABLE ONLY public.user_sum
    ADD CONSTRAINT user_sum_pkey PRIMARY KEY (allocation, uid);
CREATE INDEX allocation_fund ON public.allocation USING btree (project, resource, end_at);
CREATE UNIQUE INDEX journal_key ON public.journal USING btree (actor, key) WHERE (key IS NOT NULL);
CREATE INDEX journal_refusal ON public.journal USING btree (owner, id) WHERE (kind = 'refusal'::text);
CREATE INDEX journal_refused ON public.journal USING btree (id) WHERE (kind = 'refusal'::text);
CREATE INDEX journal_undoing ON public.journal USING btree (allocation, seq) WHERE (kind = ANY (ARRAY['deposit'::text, 'withdraw'::text, 'transfer-in'::text, 'refund'::text, 'recharge'::text, 'terms'::text, 'cap'::text, 'member'::text, 'open'::text]));
CREATE INDEX member_uid ON public.member USING btree (uid);
CREATE INDEX nonce_expires ON public.nonce USING btree (expires_at);
CREATE INDEX run_allocation ON public.run USING btree (allocation, id);
CREATE INDEX run_ended ON public.run USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_open ON public.run USING btree (until_at) WHERE (state = 'held'::text);
CREATE INDEX run_owner ON public.run USING btree (owner, id);
CREATE INDEX run_project ON public.run USING btree (project, id);
CREATE INDEX token_uid ON public.token USING btree (uid);
CREATE TRIGGER allocation_stays BEFORE DELETE OR TRUNCATE ON public.allocation FOR EACH STATEMENT EXECUTE FUNCTION public.fairbank_refuse();
CREATE TRIGGER journal_only_grows BEFORE DELETE OR UPDATE OR TRUNCATE ON public.journal FOR EACH STATEMENT EXECUTE FUNCTION public.fairbank_refuse();
CREATE TRIGGER run_stays BEFORE DELETE OR TRUNCATE ON public.run FOR EACH STATEMENT EXECUTE FUNCTION public.fairbank_refuse();
ALTER TABLE ONLY public.allocation
    ADD CONSTRAINT allocation_project_fkey FOREIGN KEY (project) REFERENCES public.project(id);
ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_project_fkey FOREIGN KEY (project) REFERENCES public.project(id);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_parent_fkey FOREIGN KEY (parent) REFERENCES public.project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.usage_head
    ADD CONSTRAINT usage_head_allocation_fkey FOREIGN KEY (allocation) REFERENCES public.allocation(id);
ALTER TABLE ONLY public.user_sum
    ADD CONSTRAINT user_sum_allocation_fkey FOREIGN KEY (allocation) REFERENCES public.allocation(id);
