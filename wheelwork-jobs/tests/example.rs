//! The example on a cluster: nodes are killed and paused, and it judges what has come of the messages.

mod common;

use std::process::Command;

/// Cargo builds the tests of the example, but not the example itself. So it is run by Cargo.
#[test]
fn no_message_of_a_cluster_is_lost_or_early_while_nodes_are_killed_and_paused() {
    let Some(server) = common::postgres::server() else { return };
    let mut cargo = Command::new(env!("CARGO"));
    // What Cargo tells this test about its package would make ring build once more.
    for (name, _) in std::env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"];
        if name.to_str().is_some_and(|name| of_package.iter().any(|it| name.starts_with(it))) {
            cargo.env_remove(name);
        }
    }
    cargo.args(["run", "--quiet", "--all-features", "--example", "delayed_messages", "--"]);
    cargo.args(["--postgres", &server.database(), "--jobs", "3000", "--duration", "10"]);
    let output = cargo.args(["--kill", "--pause", "--every", "3"]).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{out}{err}");
    let counts = |row: &str, count: &str| {
        let line = out.lines().find(|line| line.trim_start().starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no {row}:\n{out}"));
        assert!(line.ends_with(count), "{out}");
    };
    for (row, count) in [("messages scheduled", " 3,000"), ("lost", " 0"), ("sent early", " 0")] {
        counts(row, count);
    }
    counts("sent again without a reason", " 0");
    counts("nodes killed with SIGKILL", "");
    counts("nodes paused with SIGSTOP", "");
}
