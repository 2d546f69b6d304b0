//! The tables: their versions, their names, and the statements that make them.

use crate::common::postgres;
use crate::program::{Program, run};
use serde_json::json;
use tokio::runtime::Runtime;
use wheelwork_jobs::{Jobs, Postgres, Store};

const FIRST: &str = include_str!("../fixtures/version-1.sql");

#[test]
fn the_statements_are_printed_without_a_store() {
    let all = run(["schema"]);
    assert_eq!((all.code, &*all.out), (0, &*format!("{}\n", Postgres::schema(0, None).unwrap())));
    let later = run(["schema", "--from", "1", "--prefix", "mail_"]);
    assert!(later.out.contains("ALTER TABLE mail_wheelwork_jobs"), "{}", later.out);
    assert!(!later.out.contains("wheelwork_node_ids"), "{}", later.out);
    let last = run(["schema", "--from", &Postgres::VERSION.to_string()]);
    assert_eq!((last.code, &*last.out), (0, ""));
    let unknown = run(["schema", "--from", "99"]);
    assert!(
        unknown.code == 1 && unknown.err.contains("version 99: expected 0 to"),
        "{}",
        unknown.err
    );
    let refused = run(["schema", "--prefix", "mail-"]);
    assert!(refused.code == 1 && refused.err.contains("\"mail-\""), "{}", refused.err);
}

#[test]
fn older_tables_are_migrated_when_the_program_is_told_to() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let database = url.rsplit('/').next().unwrap();
    let program = Program::new("--postgres", &url);
    let missing = program.run(&["migrate"]);
    assert!(missing.code == 1 && missing.err.contains("no tables for jobs"), "{}", missing.err);
    server.psql(database, FIRST);
    let older = program.run(&["list"]);
    assert!(older.code == 1 && older.err.contains("`wheelwork-jobs migrate`"), "{}", older.err);
    let to = Postgres::VERSION;
    assert_eq!(program.run(&["migrate"]).out, format!("version 1 is now {to}\n"));
    assert_eq!(program.json(&["migrate"]), json!({"from": to, "to": to}));
    assert_eq!(program.json(&["list"]).as_array().unwrap().len(), 4);
    server.psql(database, "UPDATE wheelwork_schema SET version = 99");
    for command in ["list", "migrate"] {
        let newer = program.run(&[command]);
        assert!(
            newer.code == 1 && newer.err.contains("tables of jobs of version 99"),
            "{}",
            newer.err
        );
    }
}

#[test]
fn a_prefix_selects_the_tables() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap().with_prefix("mail_").unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async { Jobs::open(store).await.unwrap() });
    let program = Program::new("--postgres", &url);
    assert_eq!(program.run(&["--prefix", "mail_", "list"]).out, "no jobs\n");
    let other = program.run(&["list"]);
    assert!(other.code == 1 && other.err.contains("no tables for jobs"), "{}", other.err);
}
