//! The example `idle_connections` at a small size: that it passes, and that its check can fail.

mod common;
#[path = "idle_connections/harness/clients/judge.rs"]
mod judge;

use crate::common::examples::{assert_fits, run_example, said};
use judge::{LastWrites, Span, Verdict};
use std::time::{Duration, Instant};

const SERVERS: [&str; 3] = ["mio", "threaded", "tokio"];

const IDLE: Duration = Duration::from_millis(100);

#[test]
fn a_close_after_the_idle_time_is_right_and_measured_from_the_end_of_the_write() {
    let start = Instant::now();
    let mut writes = LastWrites::connect(span(start, 0, 1));
    assert_eq!(writes.judge(at(start, 100), IDLE, true), Verdict::Idle { late: Duration::ZERO });
    writes.extend(at(start, 5));
    assert_eq!(writes.end(), at(start, 5));
    writes.add(span(start, 60, 70));
    let late = Duration::from_millis(7);
    assert_eq!(writes.judge(at(start, 177), IDLE, true), Verdict::Idle { late });
}

#[test]
fn a_close_within_the_idle_time_is_wrong() {
    let start = Instant::now();
    let mut writes = LastWrites::connect(span(start, 0, 1));
    assert_eq!(writes.judge(at(start, 99), IDLE, true), Verdict::Wrong);
    writes.add(span(start, 80, 99));
    assert_eq!(writes.judge(at(start, 179), IDLE, true), Verdict::Wrong);
}

#[test]
fn a_close_that_crosses_a_late_write_is_excused() {
    let start = Instant::now();
    let mut writes = LastWrites::connect(span(start, 0, 1));
    writes.add(span(start, 80, 100));
    assert_eq!(writes.judge(at(start, 101), IDLE, true), Verdict::Excused);
    // The write before that does not matter any more.
    writes.add(span(start, 130, 131));
    assert_eq!(writes.judge(at(start, 132), IDLE, true), Verdict::Wrong);
}

/// The server may have closed the connection before it could see the last write.
#[test]
fn a_write_after_the_client_was_held_up_needs_no_answer() {
    let start = Instant::now();
    let mut writes = LastWrites::connect(span(start, 0, 1));
    writes.add(span(start, 60, 70));
    let late = Duration::from_millis(7);
    assert_eq!(writes.judge(at(start, 177), IDLE, false), Verdict::Idle { late });
    writes.add(span(start, 150, 160));
    assert_eq!(writes.judge(at(start, 267), IDLE, true), Verdict::Idle { late });
    assert_eq!(writes.judge(at(start, 267), IDLE, false), Verdict::Excused);
}

#[test]
fn an_event_loop_closes_every_idle_connection_and_no_other() {
    closes_every_idle_connection_and_no_other("mio");
}

#[test]
fn a_threaded_server_closes_every_idle_connection_and_no_other() {
    closes_every_idle_connection_and_no_other("threaded");
}

#[test]
fn an_async_server_closes_every_idle_connection_and_no_other() {
    closes_every_idle_connection_and_no_other("tokio");
}

/// Clients that are silent, talk, talk a byte at a time, shut down their sending side, or reset.
fn closes_every_idle_connection_and_no_other(server: &str) {
    // Longer than a busy machine keeps a thread of the server waiting, whose last echo would be missing.
    let options = ["--connections=200", "--idle-ms=1000", "--talk-ms=2000", "--server", server];
    let (ok, text) =
        run_until(&options, |text| row(text, "reset") > 0 || text.contains("FAILED: "));
    assert!(ok, "{text}");
    assert_eq!(row(&text, "connections opened"), 200, "{text}");
    let ended = ["closed as idle", "excused", "reset"].map(|how| row(&text, how));
    assert_eq!(ended.iter().sum::<u64>(), 200, "{text}");
    for fault in ["wrongly closed", "missed", "miscounted", "garbled", "not connected"] {
        assert_eq!(row(&text, fault), 0, "{text}");
    }
    assert!(row(&text, "messages echoed") > 0, "{text}");
    assert!(row(&text, "timer: wake-ups") > 0, "{text}");
    assert!(text.contains("OK: "), "{text}");
}

#[test]
fn a_server_that_closes_too_early_is_caught() {
    for server in SERVERS {
        let early = ["--connections=50", "--sabotage=early", "--server", server];
        let (ok, text) = run_until(&early, |text| row(text, "wrongly closed") > 0);
        assert!(!ok && text.contains("FAILED: "), "{text}");
    }
}

#[test]
fn a_server_that_never_closes_is_caught() {
    for server in SERVERS {
        let never = ["--connections=50", "--sabotage=never", "--grace-ms=300"];
        let (ok, text) = run(&[&never[..], &["--server", server]].concat());
        assert!(!ok, "{text}");
        assert_eq!(row(&text, "missed") + row(&text, "reset"), 50, "{text}");
        assert!(text.contains("FAILED: "), "{text}");
    }
}

/// When it goes on, the timer finds many that were silent for the server, and have bytes unread.
#[test]
#[cfg(unix)]
fn a_server_that_is_stopped_and_continued_closes_no_active_connection() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::process::{Command, Stdio};
    let options = ["--connections=200", "--idle-ms=800", "--talk-ms=2500", "--grace-ms=10000"];
    let servers = SERVERS.map(|server| {
        let mut command = Command::new(common::examples::example("idle_connections"));
        let command = command.args(options).args(["--server", server]).stdout(Stdio::piped());
        command.spawn().expect("the example starts")
    });
    for (pause, signal) in [(1000, Signal::SIGSTOP), (1000, Signal::SIGCONT)] {
        std::thread::sleep(Duration::from_millis(pause));
        for server in &servers {
            kill(Pid::from_raw(server.id() as i32), signal).expect("it is there");
        }
    }
    for (server, name) in servers.into_iter().zip(SERVERS) {
        let output = server.wait_with_output().expect("the example ends");
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}

#[test]
fn clients_do_not_wait_for_the_tick_of_the_server() {
    let slow = ["--connections=200", "--tick-ms=2000"];
    let (ok, text) = run_until(&slow, |text| row(text, "messages echoed") > 300);
    assert!(ok, "{text}");
}

#[test]
fn the_report_fits_a_terminal_of_80_columns() {
    assert_fits(&run(&["--connections=50", "--sabotage=early"]).1);
}

fn at(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

fn span(start: Instant, before: u64, after: u64) -> Span {
    Span { before: at(start, before), after: at(start, after) }
}

/// A short run; whether it succeeded, and all that it said. The grace is long, for a busy machine.
fn run(options: &[&str]) -> (bool, String) {
    let short = ["--idle-ms=300", "--talk-ms=900", "--grace-ms=10000"];
    // The last of two wins.
    let output = run_example("idle_connections", &[&short, options].concat());
    (output.status.success(), said(&output))
}

/// Runs until the report is this once: clients that are held up may not show it.
fn run_until(options: &[&str], shows: impl Fn(&str) -> bool) -> (bool, String) {
    let mut ran = (false, String::new());
    for _ in 0..20 {
        ran = run(options);
        if shows(&ran.1) {
            return ran;
        }
    }
    panic!("none of 20 runs shows it: {}", ran.1);
}

/// The value in the table's row of that name.
fn row(text: &str, name: &str) -> u64 {
    let mut cells = text.lines().map(|line| line.trim_matches('│').split('┆').map(str::trim));
    let value = cells.find_map(|mut cells| (cells.next() == Some(name)).then(|| cells.next())?);
    let value = value.unwrap_or_else(|| panic!("no row {name} in:\n{text}"));
    value.replace(',', "").parse().expect("a number")
}
