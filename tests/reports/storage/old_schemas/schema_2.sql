BEGIN TRANSACTION;
CREATE TABLE plumbline_accepted (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	what TEXT DEFAULT '' NOT NULL, 
	test TEXT DEFAULT '' NOT NULL, 
	column_name TEXT DEFAULT '' NOT NULL, 
	issue TEXT DEFAULT '' NOT NULL, 
	expires TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (run, number)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_attempts (
	run INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	outcome TEXT, 
	verdict TEXT, 
	margin REAL, 
	boundaries BIGINT, 
	judged_calls BIGINT, 
	graphs BIGINT, 
	ops BIGINT, 
	breaks BIGINT, 
	recompiles BIGINT, 
	test_seconds REAL, 
	compile_seconds REAL, 
	eager_seconds REAL, 
	compiled_seconds REAL, 
	compile_cpu REAL, 
	t_element REAL, 
	t_rms REAL, 
	t_bias REAL, 
	unstable REAL, 
	worst_index TEXT, 
	actual REAL, 
	eager REAL, 
	reference REAL, 
	error REAL, 
	scale REAL, 
	stage TEXT, 
	sentence TEXT, 
	aspect TEXT, 
	"where" TEXT, 
	user_file TEXT, 
	user_line BIGINT, 
	boundary TEXT, 
	notes TEXT, 
	events TEXT, 
	PRIMARY KEY (run, test, col, attempt)
)
 WITHOUT ROWID

;
INSERT INTO "plumbline_attempts" VALUES(1,1,2,2,'failed','WRONG',31.3,0,2,1,10,0,0,0.0,0.0,0.0,0.0,0.0,31.3,NULL,NULL,0.0,'[3, 17]',0.48213,0.510021,0.51002,0.02789,0.00089,'inductor','differs by 31.3 units of noise at [3, 17]','values','output[0]','model.py',88,'Attention','[]','[]');
CREATE TABLE plumbline_case_states (
	stream INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	since BIGINT DEFAULT '0' NOT NULL, 
	streak BIGINT DEFAULT '0' NOT NULL, 
	clean BIGINT DEFAULT '0' NOT NULL, 
	recent BIGINT DEFAULT '0' NOT NULL, 
	rises BIGINT DEFAULT '0' NOT NULL, 
	last_flaky BIGINT DEFAULT '0' NOT NULL, 
	last_good BIGINT DEFAULT '0' NOT NULL, 
	last_run BIGINT DEFAULT '0' NOT NULL, 
	outcome TEXT DEFAULT '' NOT NULL, 
	verdict TEXT DEFAULT '' NOT NULL, 
	cause TEXT DEFAULT '' NOT NULL, 
	margin REAL DEFAULT '0' NOT NULL, 
	graphs BIGINT DEFAULT '0' NOT NULL, 
	ops BIGINT DEFAULT '0' NOT NULL, 
	breaks BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (stream, test, col)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_column_nights (
	run INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	cases BIGINT DEFAULT '0' NOT NULL, 
	good BIGINT DEFAULT '0' NOT NULL, 
	weak BIGINT DEFAULT '0' NOT NULL, 
	failing BIGINT DEFAULT '0' NOT NULL, 
	vacuous BIGINT DEFAULT '0' NOT NULL, 
	skipped BIGINT DEFAULT '0' NOT NULL, 
	graphs BIGINT DEFAULT '0' NOT NULL, 
	ops BIGINT DEFAULT '0' NOT NULL, 
	breaks BIGINT DEFAULT '0' NOT NULL, 
	recompiles BIGINT DEFAULT '0' NOT NULL, 
	near_limit BIGINT DEFAULT '0' NOT NULL, 
	compile_seconds REAL DEFAULT '0' NOT NULL, 
	compile_cpu REAL DEFAULT '0' NOT NULL, 
	paired_cpu REAL DEFAULT '0' NOT NULL, 
	other_cpu REAL DEFAULT '0' NOT NULL, 
	eager_seconds REAL DEFAULT '0' NOT NULL, 
	compiled_seconds REAL DEFAULT '0' NOT NULL, 
	worst_margin REAL DEFAULT '0' NOT NULL, 
	PRIMARY KEY (run, col)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_columns (
	id INTEGER NOT NULL, 
	compiler TEXT DEFAULT '' NOT NULL, 
	backend TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (compiler, backend)
);
INSERT INTO "plumbline_columns" VALUES(1,'plumbline','inductor');
INSERT INTO "plumbline_columns" VALUES(2,'plumbline','eager');
CREATE TABLE plumbline_details (
	run INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	t_element REAL, 
	t_rms REAL, 
	t_bias REAL, 
	unstable REAL, 
	worst_index TEXT, 
	actual REAL, 
	eager REAL, 
	reference REAL, 
	error REAL, 
	scale REAL, 
	stage TEXT, 
	sentence TEXT, 
	aspect TEXT, 
	"where" TEXT, 
	user_file TEXT, 
	user_line BIGINT, 
	boundary TEXT, 
	notes TEXT, 
	events TEXT, 
	PRIMARY KEY (run, test, col)
)
 WITHOUT ROWID

;
INSERT INTO "plumbline_details" VALUES(1,1,2,31.3,NULL,NULL,0.0,'[3, 17]',0.48213,0.510021,0.51002,0.02789,0.00089,'inductor','differs by 31.3 units of noise at [3, 17]','values','output[0]','model.py',88,'Attention','[]','[]');
CREATE TABLE plumbline_fault_cases (
	fault BIGINT NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	PRIMARY KEY (fault, test, col)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_faults (
	fault BIGINT NOT NULL, 
	stream BIGINT DEFAULT '0' NOT NULL, 
	first BIGINT DEFAULT '0' NOT NULL, 
	last BIGINT DEFAULT '0' NOT NULL, 
	fixed BIGINT DEFAULT '0' NOT NULL, 
	mark TEXT DEFAULT '' NOT NULL, 
	aspect TEXT DEFAULT '' NOT NULL, 
	stage TEXT DEFAULT '' NOT NULL, 
	file TEXT DEFAULT '' NOT NULL, 
	suspect TEXT DEFAULT '' NOT NULL, 
	why TEXT DEFAULT '' NOT NULL, 
	title TEXT DEFAULT '' NOT NULL, 
	columns TEXT, 
	changed TEXT, 
	PRIMARY KEY (fault)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_findings (
	run INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	level TEXT DEFAULT '' NOT NULL, 
	rule TEXT DEFAULT '' NOT NULL, 
	test TEXT DEFAULT '' NOT NULL, 
	column_name TEXT DEFAULT '' NOT NULL, 
	text TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (run, number)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_judged_calls (
	run INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	margin REAL, 
	t_element REAL, 
	t_rms REAL, 
	t_bias REAL, 
	unstable REAL, 
	worst_index TEXT, 
	actual REAL, 
	eager REAL, 
	reference REAL, 
	error REAL, 
	scale REAL, 
	boundary TEXT, 
	call BIGINT, 
	verdict TEXT, 
	aspect TEXT, 
	"where" TEXT, 
	sentence TEXT, 
	graphs BIGINT, 
	ops BIGINT, 
	eager_seconds REAL, 
	compiled_seconds REAL, 
	PRIMARY KEY (run, test, col, number)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_meta (
	schema_version INTEGER NOT NULL
);
INSERT INTO "plumbline_meta" VALUES(2);
CREATE TABLE plumbline_nights (
	run INTEGER NOT NULL, 
	stream BIGINT DEFAULT '0' NOT NULL, 
	verdict TEXT DEFAULT '' NOT NULL, 
	sentence TEXT DEFAULT '' NOT NULL, 
	cases BIGINT DEFAULT '0' NOT NULL, 
	good BIGINT DEFAULT '0' NOT NULL, 
	failing BIGINT DEFAULT '0' NOT NULL, 
	new BIGINT DEFAULT '0' NOT NULL, 
	still BIGINT DEFAULT '0' NOT NULL, 
	flaky BIGINT DEFAULT '0' NOT NULL, 
	fixed BIGINT DEFAULT '0' NOT NULL, 
	vacuous BIGINT DEFAULT '0' NOT NULL, 
	skipped BIGINT DEFAULT '0' NOT NULL, 
	missing BIGINT DEFAULT '0' NOT NULL, 
	changed TEXT, 
	PRIMARY KEY (run)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_renames (
	run INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	was BIGINT DEFAULT '0' NOT NULL, 
	why TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (run, test)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_results (
	run INTEGER NOT NULL, 
	test INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	outcome TEXT, 
	verdict TEXT, 
	margin REAL, 
	boundaries BIGINT, 
	judged_calls BIGINT, 
	graphs BIGINT, 
	ops BIGINT, 
	breaks BIGINT, 
	recompiles BIGINT, 
	test_seconds REAL, 
	compile_seconds REAL, 
	eager_seconds REAL, 
	compiled_seconds REAL, 
	compile_cpu REAL, 
	failing BOOLEAN NOT NULL, 
	PRIMARY KEY (run, test, col)
)
 WITHOUT ROWID

;
INSERT INTO "plumbline_results" VALUES(1,1,1,'passed','NOISE',0.2,0,2,1,10,0,0,0.0,0.0,0.0,0.0,0.0,0);
INSERT INTO "plumbline_results" VALUES(1,1,2,'failed','WRONG',31.3,0,2,1,10,0,0,0.0,0.0,0.0,0.0,0.0,1);
CREATE TABLE plumbline_runs (
	id INTEGER NOT NULL, 
	run_id TEXT, 
	utc TEXT, 
	"commit" TEXT, 
	dirty BOOLEAN, 
	plumbline TEXT, 
	torch TEXT, 
	python TEXT, 
	platform TEXT, 
	threads BIGINT, 
	command TEXT, 
	schema_version BIGINT, 
	finished TEXT, 
	kind TEXT, 
	suite TEXT, 
	branch TEXT, 
	machine TEXT, 
	cache TEXT, 
	void TEXT, 
	partial TEXT, 
	rerun_of TEXT, 
	shards BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (run_id)
);
INSERT INTO "plumbline_runs" VALUES(1,'night-1','2026-01-02T03:04:05+00:00','0123456789abcdef',0,'0.1.0','2.13.0+cpu','3.11.7','',2,'',2,'2026-11-26T00:12:31+00:00','nightly','s','','','','','','',1);
CREATE TABLE plumbline_shards (
	run INTEGER NOT NULL, 
	shard INTEGER NOT NULL, 
	machine TEXT DEFAULT '' NOT NULL, 
	begun TEXT DEFAULT '' NOT NULL, 
	finished TEXT DEFAULT '' NOT NULL, 
	partial TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (run, shard)
)
 WITHOUT ROWID

;
INSERT INTO "plumbline_shards" VALUES(1,1,'','2026-01-02T03:04:05+00:00','2026-11-26T00:12:31+00:00','');
CREATE TABLE plumbline_sources (
	test INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	source TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (test, run)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_streams (
	id INTEGER NOT NULL, 
	suite TEXT DEFAULT '' NOT NULL, 
	branch TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (suite, branch)
);
CREATE TABLE plumbline_strips (
	run INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	marks BLOB, 
	margins BLOB, 
	seconds BLOB, 
	PRIMARY KEY (run, col)
)
 WITHOUT ROWID

;
CREATE TABLE plumbline_tests (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "plumbline_tests" VALUES(1,'tests/test_a.py::test_a');
CREATE INDEX plumbline_results_failing ON plumbline_results (run, test, col) WHERE failing;
CREATE INDEX plumbline_results_of_case ON plumbline_results (test, col, run);
CREATE INDEX plumbline_nights_of_stream ON plumbline_nights (stream, run);
CREATE INDEX plumbline_case_states_by_state ON plumbline_case_states (stream, state);
CREATE INDEX plumbline_faults_of_stream ON plumbline_faults (stream, fixed, first);
COMMIT;
