//! The examples as programs: one on a cluster, whose nodes are killed and paused, and which judges what has come
//! of the messages; and the web service, which is asked, waited for and terminated.

mod common;

// Cargo builds an example as a program or as a test. So the tests in these run here.
#[allow(dead_code)]
#[path = "../examples/delayed_messages/main.rs"]
mod delayed_messages;
#[allow(dead_code)]
#[path = "../examples/orders/main.rs"]
mod orders;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Cargo builds the examples next to the tests.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("a test knows its path");
    let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
    let example = profile.join("examples").join(name);
    assert!(example.exists(), "`cargo test` builds {}, `--test` alone does not", example.display());
    Command::new(example)
}

/// Runs `delayed_messages`, which must say this of each row.
fn send_messages(options: &[&str], expected: &[(&str, &str)]) {
    let output = example("delayed_messages").args(options).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{out}{err}");
    for (row, count) in expected {
        let line = out.lines().find(|line| line.trim_start().starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no {row}:\n{out}"));
        assert!(line.ends_with(count), "{out}");
    }
}

#[test]
fn no_message_of_a_cluster_is_lost_or_early_while_nodes_are_killed_and_paused() {
    let Some(server) = common::postgres::server() else { return };
    let database = server.database();
    let size = ["--postgres", &database, "--jobs", "3000", "--duration", "10"];
    let rows = [
        ("messages scheduled", " 3,000"),
        ("lost", " 0"),
        ("sent early", " 0"),
        ("sent again without a reason", " 0"),
        ("nodes killed with SIGKILL", ""),
        ("nodes paused with SIGSTOP", ""),
    ];
    send_messages(&[&size[..], &["--kill", "--pause", "--every", "3"]].concat(), &rows);
}

#[test]
fn no_message_of_the_embedded_store_is_lost_or_early() {
    let rows = [("messages scheduled", " 2,000"), ("lost", " 0"), ("sent early", " 0")];
    send_messages(&["--jobs", "2000", "--duration", "4"], &rows);
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
    let mut service = example("orders")
        .args([&*server.database(), "6", "127.0.0.1:0"])
        .stdout(Stdio::piped())
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

    let id = nix::unistd::Pid::from_raw(service.id().cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(lines.next().unwrap(), "stopped: 0 handlers still ran, 0 jobs were given back");
    let begun = Instant::now();
    while service.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}
