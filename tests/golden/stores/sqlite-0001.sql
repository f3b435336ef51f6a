BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE allocation (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	resource TEXT NOT NULL, 
	category TEXT NOT NULL, 
	start_at BIGINT NOT NULL, 
	end_at BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	partition TEXT, 
	reservation TEXT, 
	credit_limit BIGINT NOT NULL, 
	deposited BIGINT NOT NULL, 
	charged BIGINT NOT NULL, 
	held BIGINT NOT NULL, 
	overrun BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	link BLOB NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT allocation_period CHECK (start_at < end_at), 
	CONSTRAINT allocation_sums CHECK (deposited >= 0 AND charged >= 0 AND held >= 0 AND credit_limit >= 0 AND overrun >= 0), 
	CONSTRAINT allocation_not_overdrawn CHECK (deposited + credit_limit + overrun >= charged + held), 
	FOREIGN KEY(project) REFERENCES project (id)
);
INSERT INTO "allocation" VALUES(1,1,'cpu','research',1758464000,1821536000,'active',1,NULL,NULL,600,5710,33,0,0,7,X'1FA2687F2AB3997C37ABB96F88CD1668AA245413A3D8A05AF067FF7EA94C3435');
INSERT INTO "allocation" VALUES(2,2,'cpu','research',1758464000,1821536000,'active',0,NULL,NULL,0,9700,650,2705,0,19,X'F56B35C90D533AD3A886D057E59F5369A015BF7B84010619FA4F9054F4F80A18');
CREATE TABLE journal (
	id INTEGER NOT NULL, 
	allocation BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run BIGINT, 
	owner BIGINT, 
	actor BIGINT NOT NULL, 
	acting_as BIGINT, 
	"key" TEXT, 
	digest BLOB, 
	deposited BIGINT NOT NULL, 
	charged BIGINT NOT NULL, 
	held BIGINT NOT NULL, 
	credit_limit BIGINT NOT NULL, 
	overrun BIGINT NOT NULL, 
	comment TEXT, 
	details TEXT, 
	link BLOB NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT journal_allocation_seq UNIQUE (allocation, seq)
);
INSERT INTO "journal" VALUES(1,0,1,1790000000,'project',0,NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"project":1,"gname":"college","gid":4000,"account":"college","parent":null}',X'3561184BF7682C99886776742E74E30949A883C2E5C6AD5158E5383190724517');
INSERT INTO "journal" VALUES(2,0,2,1790000400,'project',0,NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"project":2,"gname":"physics","gid":4001,"account":"phys","parent":1}',X'CCFF7DBC9EF33F8040FDF8068211DC4E3E53110DE5AFC9DEC79F898DE3957CD8');
INSERT INTO "journal" VALUES(3,0,3,1790000800,'member',0,NULL,1001,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"project":1,"uid":1001,"role":"pi"}',X'DA9EA7EE890A5D099DD8BE70D06B25012775FADCA079419C67270F3A9FC2F65E');
INSERT INTO "journal" VALUES(4,0,4,1790001200,'member',0,NULL,1002,0,1001,NULL,NULL,0,0,0,0,0,NULL,'{"project":2,"uid":1002,"role":"member"}',X'835A1FE185617981AF21D31D41853265285630B940168879C0DBC58FC45D887D');
INSERT INTO "journal" VALUES(5,0,5,1790001600,'member',0,NULL,1003,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"project":2,"uid":1003,"role":"member"}',X'4826DF592C68F4357A68C8442E6FDDE65FCE169E94ED9563F958957CE20017B5');
INSERT INTO "journal" VALUES(6,0,6,1790002000,'member',0,NULL,1003,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"project":2,"uid":1003,"role":null}',X'1962B4911693497A1637C6A6D9E7E90CEDEDDED4E84EACAB4A079A343493D0EC');
INSERT INTO "journal" VALUES(7,0,7,1790002400,'note',0,NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"note":"somebody acted as user 1002"}',X'3BC779F77B633108D9DDB636CC86BEC840B0B69FFF0C56BC009C57E43DFABF1B');
INSERT INTO "journal" VALUES(8,0,8,1790002800,'token',0,NULL,1002,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"token":1,"digest":"6c6170746f706c6170746f706c6170746f706c6170746f70","uid":1002,"label":"laptop","scopes":["read"],"created":1790002800,"expires":1821536000,"revoked":null,"parent":null}',X'3B329AB3CF2E5D11213A3AD492D7E1C57D187B91078AC7801DAC1D83A61154A2');
INSERT INTO "journal" VALUES(9,0,9,1790003200,'token',0,NULL,1002,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"token":2,"digest":"706f7274616c706f7274616c706f7274616c706f7274616c","uid":1002,"label":"portal","scopes":["read"],"created":1790003200,"expires":1821536000,"revoked":null,"parent":null}',X'9544453387F440CA446A0C0040B2F3E17B6A64E0F3947657D88B8911B87CFA11');
INSERT INTO "journal" VALUES(10,0,10,1790003600,'token',0,NULL,1002,0,NULL,NULL,NULL,0,0,0,0,0,NULL,'{"token":3,"digest":"6c6f63616c6c6f63616c6c6f63616c6c6f63616c","uid":1002,"label":"local","scopes":["agent:local","write"],"created":1790003600,"expires":1821536000,"revoked":null,"parent":null}',X'EB1F19E73512E2FB3CA2A341DFC71B98DC2C25ED0A7257DC84E5D4C8AA2EC00E');
INSERT INTO "journal" VALUES(11,0,11,1790004000,'token',0,NULL,1002,0,1001,NULL,NULL,0,0,0,0,0,NULL,'{"token":1,"digest":"6c6170746f706c6170746f706c6170746f706c6170746f70","uid":1002,"label":"laptop","scopes":["read"],"created":1790002800,"expires":1821536000,"revoked":1790004000,"parent":null}',X'125046FB2371D3B019F8624012821C9AB58DDCBF5BD20C54C1A66C6C896D87E9');
INSERT INTO "journal" VALUES(12,1,1,1790004800,'open',0,NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,0,'committee','{"project":1,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}',X'11A7FCF4428ADCFE804A295ED85F3EA88A7F7F98B6ED537543C3D94DEAF40273');
INSERT INTO "journal" VALUES(13,1,2,1790004800,'deposit',6000,NULL,NULL,0,NULL,NULL,NULL,6000,0,0,0,0,'committee',NULL,X'BE4E3C0EAE17000C52FC1589805FBED8A6B2522458585973BA2AC6C60A7F0833');
INSERT INTO "journal" VALUES(14,2,1,1790005200,'open',0,NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,0,'committee','{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}',X'8A47670A8C8478CACEB0B78423592263338502D77F87E52B330662F01116E8F1');
INSERT INTO "journal" VALUES(15,2,2,1790005200,'deposit',9000,NULL,NULL,0,NULL,NULL,NULL,9000,0,0,0,0,'committee',NULL,X'48644870C6C6FED145EBC4C61C03849BA9F7DD76FB058C88D173A2EC3C679407');
INSERT INTO "journal" VALUES(16,1,3,1790005600,'deposit',500,NULL,NULL,0,NULL,'deposit',X'2EAC0AC6C9BE9F5B5C4A563D35D67A11',6500,0,0,0,0,'more',NULL,X'CDC569DDDB8484EE62ED8086AB995253B5BF4920B2B7C450533E8B7FC4A0076E');
INSERT INTO "journal" VALUES(17,1,4,1790006000,'withdraw',90,NULL,NULL,0,NULL,NULL,NULL,6410,0,0,0,0,'less',NULL,X'EE55D415AFF55B2379498620D0F81032C1A69D02873879CEA6FD913142D88874');
INSERT INTO "journal" VALUES(18,1,5,1790006400,'transfer-out',700,NULL,NULL,0,NULL,'transfer',X'E95A03132DCA991EA17CAFCBC8EC5084',5710,0,0,0,0,NULL,'{"to":2}',X'9B9B8448F14D870CE9C1A395EC882230048FE694E9E0B02BEAECF8EF47BE06F2');
INSERT INTO "journal" VALUES(19,2,3,1790006400,'transfer-in',700,NULL,NULL,0,NULL,NULL,NULL,9700,0,0,0,0,NULL,'{"from":1}',X'253F3348DAC9EAD6A79CB35E7B884F9728E6B181C12847B49EC166D081528F8A');
INSERT INTO "journal" VALUES(20,1,6,1790006800,'terms',0,NULL,NULL,0,1001,NULL,NULL,5710,0,0,600,0,NULL,'{"project":1,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":true,"state":"active"}',X'E91FBC0A701FC2F416B31BFC47BD1AB97CABE707A7616174587039B841746B0F');
INSERT INTO "journal" VALUES(21,2,4,1790007200,'terms',0,NULL,NULL,0,NULL,NULL,NULL,9700,0,0,0,0,NULL,'{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"frozen"}',X'98B482B14CFEA2F234F17E383EC1938329511D51793F3880C81A09363E169AF5');
INSERT INTO "journal" VALUES(22,2,5,1790007600,'terms',0,NULL,NULL,0,NULL,NULL,NULL,9700,0,0,0,0,NULL,'{"project":2,"resource":"cpu","category":"research","start":1758464000,"end":1821536000,"shared":false,"state":"active"}',X'7DE1871E4EB2C5A565AAA49AB55EFCBC8879C4A2C6907052C2C281F2D9261CE0');
INSERT INTO "journal" VALUES(23,2,6,1790008000,'cap',5000,NULL,1002,0,NULL,NULL,NULL,9700,0,0,0,0,NULL,'{"cap":5000}',X'81AC6575026F81EEC6D725C4B7C611D1F489A5EF55A1CCFA00020F1D97E67FBF');
INSERT INTO "journal" VALUES(24,2,7,1790008400,'hold',1201,24,1003,0,NULL,'hold.1',X'ABB3659B21DB578E4A4BA614D9A0622D',9700,0,1201,0,0,NULL,'{"run":["local",1,1789999901,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 1","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}',X'7E2F70127B35FFE6A166036D8D5517869CE87E35AAA6AB551EA2F4C5211D1A20');
INSERT INTO "journal" VALUES(25,2,8,1790008800,'hold',1202,25,1002,0,NULL,'hold.2',X'E52C5C7D5EF55DE09E14022C5558F133',9700,0,2403,0,0,NULL,'{"run":["local",2,1789999902,0],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 2","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}',X'2DB84C3F80666240EA7F548656D9AAB8010452EE984CE07A6BA26CAAF97A2C7D');
INSERT INTO "journal" VALUES(26,2,9,1790009200,'hold',1203,26,1003,0,NULL,'hold.3',X'1018E4106945420D20CED23272A06247',9700,0,3606,0,0,NULL,'{"run":["local",3,1789999903,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 3","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}',X'66181F5D88A6977CC70CB8185055ED28EF0C09747C9D49BBF15EB7BE41B3D0B1');
INSERT INTO "journal" VALUES(27,2,10,1790009600,'hold',1204,27,1002,0,1001,'hold.4',X'EACC843B17D92C8C0DE824876AFB94A0',9700,0,4810,0,0,NULL,'{"run":["local",4,1789999904,0],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 4","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}',X'8841CEC76CCB522C73FDBD1D30791763A60B3B464AC01243D3E9C6F59BBBD337');
INSERT INTO "journal" VALUES(28,2,11,1790010000,'hold',1205,28,1003,0,NULL,'hold.5',X'0D22DC3529FDB017D1CD0FC96A151389',9700,0,6015,0,0,NULL,'{"run":["local",5,1789999905,1],"project":2,"partition":"cpu","start":1790000000,"until":1790007200,"job_details":{"name":"relax 5","qos":"normal","nodes":1,"cpus":8,"tres":"cpu=8,mem=16G,node=1","limit_seconds":7200}}',X'5698D26FB18BBA002D0DACC073C204284BA10F8622250A330CF06A479D064F3D');
INSERT INTO "journal" VALUES(29,2,12,1790010400,'adjust',299,24,1003,0,NULL,'adjust',X'4E38DDC6CCA96199108112F828A8048D',9700,0,6314,0,0,NULL,'{"until":1790032400}',X'9E4C8D4BF1D977ADEC5761128C33F6A1BDF53BC972CAEDD1398854064EF90EB3');
INSERT INTO "journal" VALUES(30,2,13,1790010800,'charge',700,25,1002,0,NULL,NULL,NULL,9700,700,5112,0,0,NULL,'{"outcome":"COMPLETED","elapsed_seconds":3600,"ended":1790003600,"written_off":0,"job_details":{"exit_status":0,"cpu_seconds":25200}}',X'8A26204DF93E45FE7E529236DFBD1BE5511CDC8BF52C45AEC9DC877599A5E86F');
INSERT INTO "journal" VALUES(31,2,14,1790011200,'release',1203,26,1003,0,NULL,NULL,NULL,9700,700,3909,0,0,NULL,'{"outcome":"NODE_FAIL","elapsed_seconds":60,"ended":1790003600,"written_off":0}',X'DC7F3B3E31CFEB126CE832CB7281D65779A8D4C057B7D21C475327FEBF1F8D9A');
INSERT INTO "journal" VALUES(32,2,15,1790011600,'refund',100,25,1002,0,NULL,NULL,NULL,9700,600,3909,0,0,'a bad node',NULL,X'19F3E6612554E4C3ADD4EB28E248ECA6577B5580C10AF8742E0E6847983508C0');
INSERT INTO "journal" VALUES(33,2,16,1790012000,'lapse',1204,27,1002,0,NULL,NULL,NULL,9700,600,2705,0,0,NULL,NULL,X'E1EBF544D48F0191620B7D6EF0513393F1477C1F6C49E70D1CBFD79A26AA3059');
INSERT INTO "journal" VALUES(34,2,17,1790012400,'refund',50,25,1002,0,1001,NULL,NULL,9700,550,2705,0,0,'another one',NULL,X'A23A8D8DA4F2F5FC22B140359DBF6B5F7C2009E9BDBE11D9004AF3D7E0E807CC');
INSERT INTO "journal" VALUES(35,2,18,1790012800,'recharge',100,25,1002,0,NULL,NULL,NULL,9700,650,2705,0,0,'it was not the node','{"undoes":32}',X'3E482F586EEE81DA7FCF271847C06168A0E8F6FE0681817B267EA1B2469977AC');
INSERT INTO "journal" VALUES(36,2,19,1790013200,'refusal',1000000,NULL,1003,0,NULL,'hold.9',X'86FE880F1F8B84BBA5903655141735AC',9700,650,2705,0,0,'no','{"reason":"INSUFFICIENT_CREDIT","detail":"none","asked":1000000,"available":6345,"allocation":2,"project":2,"account":null,"resource":"cpu","owner":1003,"run":"local/9@1789999909.1","start":null,"billing":null,"limit_seconds":7200,"observed":false,"entry":null,"facts":{"granted":9700,"charged":650,"held":2705}}',X'F56B35C90D533AD3A886D057E59F5369A015BF7B84010619FA4F9054F4F80A18');
INSERT INTO "journal" VALUES(37,0,12,1790013600,'declined',0,NULL,NULL,0,NULL,'nowhere',X'1DED0C2785C8027D75800627CD1DE173',0,0,0,0,0,'no','{"reason":"UNKNOWN_ALLOCATION","detail":"none","asked":0,"available":0,"allocation":77,"project":null,"account":null,"resource":null,"owner":null,"run":null,"start":null,"billing":null,"limit_seconds":null,"observed":false,"entry":null,"facts":null}',X'630660D01FCC7ED0915ED1DC1E1BD923AA97BA2255212B6CE0068598EFAA5325');
INSERT INTO "journal" VALUES(38,1,7,1790014000,'charge',33,38,1002,0,NULL,NULL,NULL,5710,33,0,600,0,NULL,'{"run":["local",8,1789999908,0],"project":1,"partition":"","start":1790000000,"until":1790003600,"outcome":"COMPLETED","elapsed_seconds":120,"ended":1790003600,"written_off":0}',X'1FA2687F2AB3997C37ABB96F88CD1668AA245413A3D8A05AF067FF7EA94C3435');
CREATE TABLE member (
	project INTEGER NOT NULL, 
	uid BIGINT NOT NULL, 
	role TEXT NOT NULL, 
	PRIMARY KEY (project, uid), 
	FOREIGN KEY(project) REFERENCES project (id)
);
INSERT INTO "member" VALUES(1,1001,'pi');
INSERT INTO "member" VALUES(2,1002,'member');
CREATE TABLE nonce (
	nonce BLOB NOT NULL, 
	uid BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	PRIMARY KEY (nonce)
);
CREATE TABLE project (
	id INTEGER NOT NULL, 
	gname TEXT NOT NULL, 
	gid BIGINT NOT NULL, 
	account TEXT NOT NULL, 
	parent INTEGER, 
	removed BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (gname), 
	UNIQUE (gid), 
	UNIQUE (account), 
	FOREIGN KEY(parent) REFERENCES project (id) DEFERRABLE INITIALLY DEFERRED
);
INSERT INTO "project" VALUES(1,'college',4000,'college',NULL,0);
INSERT INTO "project" VALUES(2,'physics',4001,'phys',1,0);
CREATE TABLE registry (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	link BLOB NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT registry_is_one CHECK (id = 0)
);
INSERT INTO "registry" VALUES(0,12,X'630660D01FCC7ED0915ED1DC1E1BD923AA97BA2255212B6CE0068598EFAA5325');
CREATE TABLE run (
	id INTEGER NOT NULL, 
	cluster TEXT NOT NULL, 
	job_id BIGINT NOT NULL, 
	submitted BIGINT NOT NULL, 
	restart BIGINT NOT NULL, 
	project INTEGER NOT NULL, 
	allocation INTEGER NOT NULL, 
	owner BIGINT NOT NULL, 
	partition TEXT NOT NULL, 
	state TEXT NOT NULL, 
	held BIGINT NOT NULL, 
	charged BIGINT NOT NULL, 
	written_off BIGINT NOT NULL, 
	refunded BIGINT NOT NULL, 
	start_at BIGINT NOT NULL, 
	until_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	outcome TEXT, 
	elapsed_seconds BIGINT, 
	set_by BIGINT NOT NULL, 
	name TEXT, 
	qos TEXT, 
	nodes BIGINT, 
	cpus BIGINT, 
	tres TEXT, 
	limit_seconds BIGINT, 
	exit_status BIGINT, 
	cpu_seconds BIGINT, 
	occupied BIGINT, 
	PRIMARY KEY (id), 
	CONSTRAINT run_identity UNIQUE (job_id, submitted, restart, cluster), 
	CONSTRAINT run_sums CHECK (held >= 0 AND charged >= 0 AND refunded >= 0 AND refunded <= charged), 
	CONSTRAINT run_resolved_once CHECK ((state = 'held') = (ended_at IS NULL AND state <> 'lapsed'))
);
INSERT INTO "run" VALUES(24,'local',1,1789999901,1,2,2,1003,'cpu','held',1500,0,0,0,1790000000,1790032400,NULL,NULL,NULL,29,'relax 1','normal',1,8,'cpu=8,mem=16G,node=1',7200,NULL,NULL,NULL);
INSERT INTO "run" VALUES(25,'local',2,1789999902,0,2,2,1002,'cpu','charged',0,700,0,50,1790000000,1790007200,1790003600,'COMPLETED',3600,30,'relax 2','normal',1,8,'cpu=8,mem=16G,node=1',7200,0,25200,NULL);
INSERT INTO "run" VALUES(26,'local',3,1789999903,1,2,2,1003,'cpu','released',0,0,0,0,1790000000,1790007200,1790003600,'NODE_FAIL',60,31,'relax 3','normal',1,8,'cpu=8,mem=16G,node=1',7200,NULL,NULL,NULL);
INSERT INTO "run" VALUES(27,'local',4,1789999904,0,2,2,1002,'cpu','lapsed',0,0,0,0,1790000000,1790007200,NULL,NULL,NULL,33,'relax 4','normal',1,8,'cpu=8,mem=16G,node=1',7200,NULL,NULL,NULL);
INSERT INTO "run" VALUES(28,'local',5,1789999905,1,2,2,1003,'cpu','held',1205,0,0,0,1790000000,1790007200,NULL,NULL,NULL,28,'relax 5','normal',1,8,'cpu=8,mem=16G,node=1',7200,NULL,NULL,NULL);
INSERT INTO "run" VALUES(38,'local',8,1789999908,0,1,1,1002,'','charged',0,33,0,0,1790000000,1790003600,1790003600,'COMPLETED',120,38,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE share_figure (
	cluster TEXT NOT NULL, 
	day BIGINT NOT NULL, 
	account TEXT NOT NULL, 
	login TEXT NOT NULL, 
	partition TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	shares BIGINT, 
	norm_shares DOUBLE NOT NULL, 
	usage DOUBLE NOT NULL, 
	effective DOUBLE, 
	level DOUBLE, 
	factor DOUBLE, 
	PRIMARY KEY (cluster, day, account, login, partition)
)
 WITHOUT ROWID

;
CREATE TABLE token (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	uid BIGINT NOT NULL, 
	label TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	revoked_at BIGINT, 
	parent BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "token" VALUES(1,X'6C6170746F706C6170746F706C6170746F706C6170746F70',1002,'laptop','read',1790002800,1821536000,1790004000,NULL);
INSERT INTO "token" VALUES(2,X'706F7274616C706F7274616C706F7274616C706F7274616C',1002,'portal','read',1790003200,1821536000,NULL,NULL);
INSERT INTO "token" VALUES(3,X'6C6F63616C6C6F63616C6C6F63616C6C6F63616C',1002,'local','agent:local write',1790003600,1821536000,NULL,NULL);
CREATE TABLE usage_head (
	allocation INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	PRIMARY KEY (allocation), 
	FOREIGN KEY(allocation) REFERENCES allocation (id)
);
CREATE TABLE usage_sum (
	days INTEGER NOT NULL, 
	block INTEGER NOT NULL, 
	allocation INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	cluster TEXT NOT NULL, 
	owner INTEGER NOT NULL, 
	partition TEXT NOT NULL, 
	qos TEXT NOT NULL, 
	runs BIGINT NOT NULL, 
	failed BIGINT NOT NULL, 
	charged BIGINT NOT NULL, 
	elapsed BIGINT NOT NULL, 
	core BIGINT NOT NULL, 
	gpu BIGINT NOT NULL, 
	waited BIGINT NOT NULL, 
	busy BIGINT NOT NULL, 
	given BIGINT NOT NULL, 
	wasted BIGINT NOT NULL, 
	occupied BIGINT NOT NULL, 
	without_size BIGINT NOT NULL, 
	early BIGINT NOT NULL, 
	lowest_exit BIGINT, 
	highest_exit BIGINT, 
	PRIMARY KEY (days, block, allocation, project, cluster, owner, partition, qos)
)
 WITHOUT ROWID

;
CREATE TABLE user_sum (
	allocation INTEGER NOT NULL, 
	uid BIGINT NOT NULL, 
	charged BIGINT NOT NULL, 
	held BIGINT NOT NULL, 
	cap BIGINT, 
	PRIMARY KEY (allocation, uid), 
	CONSTRAINT user_sum_sums CHECK (charged >= 0 AND held >= 0), 
	FOREIGN KEY(allocation) REFERENCES allocation (id)
)
 WITHOUT ROWID

;
INSERT INTO "user_sum" VALUES(1,1002,33,0,NULL);
INSERT INTO "user_sum" VALUES(2,1002,650,0,5000);
INSERT INTO "user_sum" VALUES(2,1003,0,2705,NULL);
CREATE INDEX run_owner ON run (owner, id);
CREATE INDEX run_project ON run (project, id);
CREATE INDEX run_allocation ON run (allocation, id);
CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX run_open ON run (until_at) WHERE state = 'held';
CREATE INDEX journal_refusal ON journal (owner, id) WHERE kind = 'refusal';
CREATE INDEX journal_undoing ON journal (allocation, seq) WHERE kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member', 'open');
CREATE INDEX journal_refused ON journal (id) WHERE kind = 'refusal';
CREATE UNIQUE INDEX journal_key ON journal (actor, "key") WHERE key IS NOT NULL;
CREATE INDEX token_uid ON token (uid);
CREATE INDEX nonce_expires ON nonce (expires_at);
CREATE INDEX member_uid ON member (uid);
CREATE INDEX allocation_fund ON allocation (project, resource, end_at);
CREATE TRIGGER allocation_apart_when_opened BEFORE INSERT ON allocation
    WHEN  EXISTS (
        SELECT 1 FROM allocation AS other
        WHERE other.project = NEW.project AND other.resource = NEW.resource AND other.id <> NEW.id
          AND other.start_at < NEW.end_at AND NEW.start_at < other.end_at
          AND other.state <> 'removed' AND NEW.state <> 'removed'
    )
    BEGIN SELECT RAISE(ABORT, 'allocation_periods_apart: allocations overlap'); END;
CREATE TRIGGER allocation_apart_when_amended BEFORE UPDATE OF project, resource, start_at, end_at, state ON allocation
    WHEN (NEW.project, NEW.resource, NEW.start_at, NEW.end_at, NEW.state) IS NOT (OLD.project, OLD.resource, OLD.start_at, OLD.end_at, OLD.state) AND EXISTS (
        SELECT 1 FROM allocation AS other
        WHERE other.project = NEW.project AND other.resource = NEW.resource AND other.id <> NEW.id
          AND other.start_at < NEW.end_at AND NEW.start_at < other.end_at
          AND other.state <> 'removed' AND NEW.state <> 'removed'
    )
    BEGIN SELECT RAISE(ABORT, 'allocation_periods_apart: allocations overlap'); END;
CREATE TRIGGER journal_only_grows BEFORE UPDATE ON journal
    BEGIN SELECT RAISE(ABORT, 'journal_only_grows: rows of journal are never changed or deleted'); END;
CREATE TRIGGER journal_stays BEFORE DELETE ON journal
    BEGIN SELECT RAISE(ABORT, 'journal_stays: rows of journal are never changed or deleted'); END;
CREATE TRIGGER run_stays BEFORE DELETE ON run
    BEGIN SELECT RAISE(ABORT, 'run_stays: rows of run are never changed or deleted'); END;
CREATE TRIGGER allocation_stays BEFORE DELETE ON allocation
    BEGIN SELECT RAISE(ABORT, 'allocation_stays: rows of allocation are never changed or deleted'); END;
CREATE VIEW projects AS SELECT id AS project_id, gname, gid, account FROM project;
CREATE VIEW allocations AS
    SELECT id AS allocation_id, project AS project_id, category, resource,
           datetime(start_at, 'unixepoch') AS start_date, datetime(end_at, 'unixepoch') AS end_date
    FROM allocation WHERE state <> 'removed';
CREATE VIEW credits AS
    SELECT id AS activity_id, allocation AS allocation_id,
           CASE WHEN kind IN ('withdraw', 'transfer-out') THEN -amount ELSE amount END AS amount,
           comment AS comments
    FROM journal
    WHERE kind IN ('deposit', 'withdraw', 'transfer-in', 'transfer-out');
CREATE VIEW predebits AS
    SELECT run.id AS activity_id, run.allocation AS allocation_id, run.held AS amount,
           journal.comment AS comments, run.job_id AS job_id,
           CASE run.state WHEN 'held' THEN 'executing' ELSE 'completed' END AS status,
           run.owner AS owner_uid
    FROM run LEFT JOIN journal ON journal.id = run.id;
CREATE VIEW debits AS
    SELECT (SELECT max(run.id) FROM run
            WHERE run.allocation = user_sum.allocation AND run.owner = user_sum.uid
              AND run.state = 'charged') AS activity_id,
           allocation AS allocation_id, charged AS amount, NULL AS comments, uid AS owner_uid
    FROM user_sum
    WHERE charged > 0;
CREATE VIEW failures AS
    SELECT id AS activity_id, nullif(allocation, 0) AS allocation_id, amount,
           coalesce(comment, json_extract(details, '$.reason')) AS comments, CAST(substr(json_extract(details, '$.run'), instr(json_extract(details, '$.run'), '/') + 1) AS INTEGER) AS job_id, owner AS owner_uid
    FROM journal
    WHERE kind = 'refusal';
CREATE VIEW activity AS
    SELECT activity_id, allocation_id, amount, comments FROM credits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM predebits
    WHERE status = 'executing'
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM debits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM failures;
CREATE VIEW balances AS
    SELECT id AS allocation_id, deposited AS credit, held AS predebit, charged AS debit,
           deposited - held - charged AS balance
    FROM allocation WHERE state <> 'removed';
COMMIT;
