//! What the program refuses, and what it says then.

use crate::common::redb;
use crate::program::{run, run_with};
use std::fs;

/// The text that is printed, after the arguments were refused.
fn refusal(code: i32, arguments: &[&str]) -> String {
    let ran = run(arguments.iter().copied());
    assert_eq!((ran.code, &*ran.out), (code, ""), "{}", ran.err);
    ran.err
}

#[test]
fn no_store_is_created_for_a_misspelt_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jbos.redb");
    let file = file.to_str().unwrap();
    let text = refusal(1, &["--store", file, "list"]);
    assert!(
        text.contains(file) && text.contains("expected the file of an embedded store"),
        "{text}"
    );
    assert!(fs::metadata(file).is_err());
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "milk, eggs").unwrap();
    let text = refusal(1, &["--store", file.to_str().unwrap(), "list"]);
    assert!(text.contains("notes.txt"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "milk, eggs");
}

#[test]
fn a_store_that_another_process_has_open_is_refused() {
    let (_store, folder) = redb();
    let file = folder.path().join("jobs.redb");
    let text = refusal(1, &["--store", file.to_str().unwrap(), "list"]);
    assert!(text.contains("that no process has open"), "{text}");
}

#[test]
fn a_url_that_cannot_be_read_is_refused() {
    let text = refusal(1, &["--postgres", "postgres://[", "list"]);
    assert!(text.contains("expected a URL such as postgres://user@host/name"), "{text}");
}

#[test]
fn a_database_that_does_not_answer_is_named_in_the_error() {
    let text = refusal(1, &["--postgres", "postgres://user:secret@127.0.0.1:1/name", "list"]);
    assert!(text.starts_with("error: the store failed to"), "{text}");
    assert!(text.contains("127.0.0.1:1/name: ") && text.contains("refused"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn the_command_line_goes_before_the_environment() {
    let (_store, folder) = redb();
    let file = folder.path().join("jobs.redb");
    let both = [
        ("WHEELWORK_JOBS_STORE", file.to_str().unwrap()),
        ("WHEELWORK_JOBS_POSTGRES", "postgres://["),
    ];
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    for variables in [&both[..1], &both[1..], &both] {
        for arguments in [["--store", missing, "list"], ["list", "--store", missing]] {
            let ran = run_with(variables, arguments);
            assert!(ran.code == 1 && ran.err.contains("no file"), "{}", ran.err);
        }
    }
    let ran = run_with(&both[..1], ["list"]);
    assert!(ran.code == 1 && ran.err.contains("that no process has open"), "{}", ran.err);
    let ran = run_with(&both[1..], ["list"]);
    assert!(ran.code == 1 && ran.err.contains("expected a URL"), "{}", ran.err);
    let ran = run_with(&both, ["list"]);
    assert!(ran.code == 2 && ran.err.contains("two stores"), "{}", ran.err);
}

#[test]
fn wrong_arguments_end_with_2() {
    assert!(refusal(2, &["list"]).contains("--store <FILE>"));
    let text = refusal(2, &["--store", "x", "show", "17"]);
    assert!(text.contains("\"17\" is not a job id: expected a UUID"), "{text}");
    assert!(refusal(2, &["--store", "x", "--postgres", "y", "list"]).contains("two stores"));
    assert!(refusal(2, &["--store", "x", "list", "--postgres", "y"]).contains("two stores"));
    refusal(2, &["--store", "x", "cancel"]);
    refusal(2, &["--store", "x", "retry"]);
    refusal(2, &["--store", "x", "list", "--dead", "--alive"]);
    refusal(2, &["--store", "x", "list", "--limit", "0"]);
}

#[test]
fn the_help_fits_80_columns_and_the_version_is_told() {
    let commands = [
        "list", "show", "cancel", "retry", "prune", "stats", "pause", "resume", "migrate",
        "schema", "serve",
    ];
    let all = run(["--help"]).out;
    for command in commands {
        assert!(all.contains(&format!("\n  {command} ")), "{command} is not in: {all}");
        for help in [run(["--help"]), run([command, "--help"]), run([command, "-h"])] {
            assert_eq!(help.code, 0);
            assert!(help.out.contains("Usage: wheelwork-jobs"), "{}", help.out);
            assert!(help.out.lines().all(|line| line.chars().count() <= 80), "{}", help.out);
        }
    }
    assert_eq!(run(["--version"]).out, format!("wheelwork-jobs {}\n", env!("CARGO_PKG_VERSION")));
}
