//! The examples as programs: one on a cluster, whose nodes are killed and paused, and which judges what has come
//! of the messages; and the web service, which is asked, waited for and terminated.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// The status of the answer to a request, and its body.
fn ask(address: &str, request: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn an_order_lapses_unless_it_is_paid_and_the_service_drains() {
    let Some(server) = common::postgres::server() else { return };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--all-features", "--example", "orders", "--"]);
    let mut service = cargo
        .args([&*server.database(), "2", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.next().unwrap();
    let address = listening.strip_prefix("listening on ").unwrap().to_owned();

    let order = r#"{"customer": "anna", "item": "a book"}"#;
    assert_eq!(ask(&address, "POST /orders", order), (201, r#"{"id":1,"state":"open"}"#.into()));
    assert_eq!(ask(&address, "POST /orders", order), (201, r#"{"id":2,"state":"open"}"#.into()));
    assert_eq!(ask(&address, "POST /orders/2/pay", ""), (200, "paid\n".into()));
    assert_eq!(ask(&address, "POST /orders/2/pay", "").0, 409);
    assert_eq!(lines.next().unwrap(), "mail: anna, a book is waiting for you");
    assert_eq!(lines.next().unwrap(), "order 1: lapsed");
    assert_eq!(ask(&address, "GET /orders/1", ""), (200, r#"{"id":1,"state":"lapsed"}"#.into()));
    assert_eq!(ask(&address, "GET /orders/2", ""), (200, r#"{"id":2,"state":"paid"}"#.into()));
    assert_eq!(ask(&address, "POST /orders/1/pay", "").0, 409);

    // The group: `cargo run` and the service.
    let group = nix::unistd::Pid::from_raw(-service.id().cast_signed());
    nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(lines.next().unwrap(), "stopped: 0 handlers still ran, 0 jobs were given back");
    let begun = Instant::now();
    while service.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}
