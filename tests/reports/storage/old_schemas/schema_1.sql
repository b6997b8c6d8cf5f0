BEGIN TRANSACTION;
CREATE TABLE plumbline_calls (
	id INTEGER NOT NULL, 
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
	run_id TEXT, 
	case_id TEXT, 
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
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES plumbline_runs (run_id)
);
INSERT INTO "plumbline_calls" VALUES(1,0.1,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','c6cc5087071e1155','Attention',1,'NOISE','','','',0,0,0.0,0.0);
INSERT INTO "plumbline_calls" VALUES(2,31.3,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','c6cc5087071e1155','Attention',2,'WRONG','','','',0,0,0.0,0.0);
INSERT INTO "plumbline_calls" VALUES(3,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','99ae249c8662b0df','Attention',1,'EQUAL','','','',0,0,0.0,0.0);
INSERT INTO "plumbline_calls" VALUES(4,0.1,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','c6cc5087071e1155','Attention',1,'NOISE','','','',0,0,0.0,0.0);
INSERT INTO "plumbline_calls" VALUES(5,31.3,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','c6cc5087071e1155','Attention',2,'WRONG','','','',0,0,0.0,0.0);
INSERT INTO "plumbline_calls" VALUES(6,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','99ae249c8662b0df','Attention',1,'EQUAL','','','',0,0,0.0,0.0);
CREATE TABLE plumbline_cases (
	id INTEGER NOT NULL, 
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
	run_id TEXT, 
	case_id TEXT, 
	test TEXT, 
	compiler TEXT, 
	backend TEXT, 
	outcome TEXT, 
	verdict TEXT, 
	stage TEXT, 
	sentence TEXT, 
	aspect TEXT, 
	"where" TEXT, 
	user_file TEXT, 
	user_line BIGINT, 
	boundary TEXT, 
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
	notes TEXT, 
	events TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES plumbline_runs (run_id)
);
INSERT INTO "plumbline_cases" VALUES(1,31.3,31.3,NULL,NULL,0.0,'[3, 17]','NaN','negative zero',0.51002,0.02789,0.00089,'run-0','c6cc5087071e1155','tests/test_a.py::test_a','plumbline','inductor','failed','WRONG','inductor','differs by 31.3 units of noise at [3, 17]','values','output[0]','model.py',88,'Attention',0,2,1,10,0,0,0.0,0.0,0.0,0.0,'["a note"]','[{"kind": "graph_break", "reason": "print()"}]');
INSERT INTO "plumbline_cases" VALUES(2,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','99ae249c8662b0df','tests/test_a.py::test_a','plumbline','eager','passed','EQUAL',NULL,'','','','',0,'',0,2,1,10,0,0,0.0,0.0,0.0,0.0,'[]','[]');
INSERT INTO "plumbline_cases" VALUES(3,9e999,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','746ecb6c918a5648','tests/test_b.py::test_b[x"y''z]','plumbline','inductor','passed','NOISE',NULL,'','','','',0,'',0,2,1,10,2,0,1.25,0.0,0.0,0.0,'[]','[]');
INSERT INTO "plumbline_cases" VALUES(4,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-0','118cc79634dec4e9','tests/test_c.py::test_c','torch','inductor','skipped','',NULL,'','','','',0,'',0,2,0,0,0,0,0.0,0.0,0.0,0.0,'[]','[]');
INSERT INTO "plumbline_cases" VALUES(5,31.3,31.3,NULL,NULL,0.0,'[3, 17]','NaN','negative zero',0.51002,0.02789,0.00089,'run-1','c6cc5087071e1155','tests/test_a.py::test_a','plumbline','inductor','failed','WRONG','inductor','differs by 31.3 units of noise at [3, 17]','values','output[0]','model.py',88,'Attention',0,2,1,10,0,0,0.0,0.0,0.0,0.0,'["a note"]','[{"kind": "graph_break", "reason": "print()"}]');
INSERT INTO "plumbline_cases" VALUES(6,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','99ae249c8662b0df','tests/test_a.py::test_a','plumbline','eager','passed','EQUAL',NULL,'','','','',0,'',0,2,1,10,0,0,0.0,0.0,0.0,0.0,'[]','[]');
INSERT INTO "plumbline_cases" VALUES(7,9e999,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','746ecb6c918a5648','tests/test_b.py::test_b[x"y''z]','plumbline','inductor','passed','NOISE',NULL,'','','','',0,'',0,2,1,10,2,0,1.25,0.0,0.0,0.0,'[]','[]');
INSERT INTO "plumbline_cases" VALUES(8,0.0,NULL,NULL,NULL,0.0,NULL,NULL,NULL,NULL,NULL,NULL,'run-1','118cc79634dec4e9','tests/test_c.py::test_c','torch','inductor','skipped','',NULL,'','','','',0,'',0,2,0,0,0,0,0.0,0.0,0.0,0.0,'[]','[]');
CREATE TABLE plumbline_meta (
	schema_version INTEGER NOT NULL
);
INSERT INTO "plumbline_meta" VALUES(1);
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
	PRIMARY KEY (id), 
	UNIQUE (run_id)
);
INSERT INTO "plumbline_runs" VALUES(1,'run-0','2026-01-02T03:04:05+00:00','0123456789abcdef',0,'0.1.0','2.13.0+cpu','3.11.7','',2,'',1,'2026-01-02T03:05:00+00:00');
INSERT INTO "plumbline_runs" VALUES(2,'run-1','2026-01-02T03:04:05+00:00','0123456789abcdef',0,'0.1.0','2.13.0+cpu','3.11.7','',2,'',1,NULL);
CREATE INDEX ix_plumbline_cases_run_id ON plumbline_cases (run_id);
CREATE INDEX ix_plumbline_cases_case_id ON plumbline_cases (case_id);
CREATE INDEX ix_plumbline_calls_run_id ON plumbline_calls (run_id);
CREATE INDEX ix_plumbline_calls_case_id ON plumbline_calls (case_id);
COMMIT;
