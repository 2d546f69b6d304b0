//! The program at a small size: that it passes, and that its judges can fail.

use std::process::{Command, Output};

/// The kinds of clients that a limit ends.
const LIMITED: [&str; 10] = [
    "hundred requests",
    "silent",
    "half a header",
    "header byte by byte",
    "half a body",
    "slow handler",
    "response not read",
    "over HTTP/2",
    "unused in the pool",
    "frozen HTTP/2 server",
];

/// The kinds that have seen all before a limit is over.
const UNLIMITED: [&str; 4] =
    ["fast", "shutdown: under way", "shutdown: unused", "after the shutdown"];

const CLIENTS: u64 = 5;

#[test]
fn every_client_sees_what_it_must_see_in_time() {
    // The grace is long, for a busy machine.
    let (code, text) = judge(&["--grace-ms=6000"]);
    assert_eq!(code, Some(0), "{text}");
    for client in LIMITED.iter().chain(&UNLIMITED) {
        assert_eq!(row(&text, client), [CLIENTS, 0, 0], "{client}\n{text}");
    }
    assert!(text.ends_with("OK: 70 clients right, 0 wrong, 0 missed.\n"), "{text}");
}

#[test]
fn a_server_that_ends_everything_too_early_is_caught_by_each_judge() {
    let (code, text) = judge(&["--sabotage=early", "--grace-ms=6000"]);
    assert_eq!(code, Some(1), "{text}");
    for client in LIMITED {
        assert_eq!(row(&text, client), [0, CLIENTS, 0], "{client}\n{text}");
    }
    assert!(text.contains("FAILED: of 70, 20 clients right, 50 wrong, 0 missed."), "{text}");
}

#[test]
fn a_server_that_ends_nothing_is_caught_by_each_judge() {
    let (code, text) = judge(&["--sabotage=never", "--grace-ms=500"]);
    assert_eq!(code, Some(1), "{text}");
    for client in LIMITED {
        assert_eq!(row(&text, client), [0, 0, CLIENTS], "{client}\n{text}");
    }
    assert!(text.contains("FAILED: "), "{text}");
}

#[test]
fn the_cost_of_a_request_is_measured() {
    let output = run(&["cost", "--rounds=2", "--requests=20"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for row in ["| none ", "| idle ", "| header ", "| request ", "| idle, header and request "] {
        assert!(text.contains(row), "{text}");
    }
    assert_fits(&text);
}

#[test]
fn the_command_line_says_what_it_expects() {
    for (options, code, expected) in [
        (&["--version"][..], 0, "http_server "),
        (&["--help"], 0, "Exits with 0"),
        (&["--clients=0"], 2, "a whole number from 1 to 1000"),
        (&["--idle-ms=soon"], 2, "a whole number from 100 to 86400000"),
        (&["cost", "--only=both"], 2, "idle, header"),
    ] {
        let output = run(options);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(expected), "{text}");
        assert_fits(&text);
    }
}

/// A small run. Each limit differs enough from the others to tell them apart.
fn judge(options: &[&str]) -> (Option<i32>, String) {
    let small = ["--clients=5", "--idle-ms=1200", "--header-ms=1800", "--request-ms=900"];
    let output = run(&[&small, options].concat());
    let text = said(&output);
    assert_fits(&text);
    (output.status.code(), text)
}

fn run(options: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_http_server");
    Command::new(program).args(options).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Right, wrong and missed in the row of that client.
fn row(text: &str, client: &str) -> [u64; 3] {
    let mut rows = text.lines().map(|line| line.trim_matches('│').split('┆').map(str::trim));
    let cells = rows.find_map(|mut cells| (cells.next() == Some(client)).then_some(cells));
    let cells = cells.unwrap_or_else(|| panic!("no row {client} in:\n{text}"));
    let numbers: Vec<u64> = cells.skip(1).take(3).map(|cell| cell.parse().unwrap()).collect();
    numbers.try_into().expect("three numbers")
}

fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
