//! Limits of the system: threads, descriptors, the disk.

use crate::common::examples::example;
use crate::common::{Record, eventually, ms};
use crate::stopped::{in_a_process_of_its_own, said_by};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, setuid};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use wheelwork::executor::{PoolError, ThreadPool};
use wheelwork::{BuildError, HashedWheelTimer};

/// The limit on processes counts threads. A process that it does not bind says so.
#[test]
fn rule_09_a_process_at_its_thread_limit_gets_an_error_and_works_once_it_is_lifted() {
    let said = said_by(in_a_process_of_its_own("limits::the_process_that_may_start_no_thread"));
    assert!(said.contains("refused") || said.contains("skipped"), "{said}");
    if said.contains("skipped") {
        eprintln!("skipped: no limit of processes binds here");
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_that_may_start_no_thread() {
    const NOBODY: Uid = Uid::from_raw(65_534);
    if Uid::effective().is_root() && setuid(NOBODY).is_err() {
        return println!("skipped: no limit of processes binds root");
    }
    let (soft, hard) = getrlimit(Resource::RLIMIT_NPROC).unwrap();
    setrlimit(Resource::RLIMIT_NPROC, 0, hard).unwrap();
    if std::thread::Builder::new().spawn(|| ()).is_ok() {
        return println!("skipped: the limit of processes does not bind");
    }
    let refused = HashedWheelTimer::new().unwrap_err();
    let BuildError::ThreadStart { source } = refused else { panic!("{refused:?}") };
    assert_eq!(source.kind(), ErrorKind::WouldBlock, "{source}");
    let refused = ThreadPool::with_size(2, 16).unwrap_err();
    assert!(matches!(refused, PoolError::ThreadStart { number: 1, threads: 2, .. }), "{refused:?}");

    setrlimit(Resource::RLIMIT_NPROC, soft, hard).unwrap();
    let pool = ThreadPool::with_size(2, 16).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let (timer, ran) = (builder.build().unwrap(), Record::new());
    timer.new_timeout(ran.note(()), ms(1)).unwrap();
    eventually("it has run", || ran.len() == 1);
    println!("refused, and then not");
}

#[test]
fn a_server_at_its_limit_of_descriptors_serves_the_connections_it_can_have() {
    let options = "--connections 1000 --idle-ms 300 --talk-ms 900 --grace-ms 10000";
    let example = example("idle_connections");
    let script = format!("ulimit -n 150 && exec '{}' {options}", example.display());
    let Output { status, stdout, stderr } =
        Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = [stdout, stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    assert!(status.success() && text.contains("OK: "), "{text}");
    assert!(text.contains("of 1,000 asked for: open-file limit 150"), "{text}");
}

/// The server's limit falls after it has read it, and the clients keep theirs. A connection that finds
/// no free descriptor waits until another one closes.
#[test]
fn a_server_out_of_descriptors_serves_one_connection_after_another() {
    use rustix::process::{Pid, Resource as Limited, Rlimit, getrlimit, prlimit};
    const LIMIT: u64 = 28;
    let options = ["--connections=120", "--idle-ms=200", "--talk-ms=200", "--grace-ms=10000"];
    for kind in ["mio", "threaded", "tokio"] {
        // Clients that have connected before the limit falls are not held up.
        eventually("the limit binds", || {
            let mut command = Command::new(example("idle_connections"));
            let command = command.args(options).args(["--server", kind]).stdout(Stdio::piped());
            let begun = Instant::now();
            let mut server = command.spawn().unwrap();
            let mut lines =
                BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
            assert!(lines.next().unwrap().contains("120 clients"), "the server has begun");
            let limit = Rlimit { current: Some(LIMIT), ..getrlimit(Limited::Nofile) };
            prlimit(Some(Pid::from_child(&server)), Limited::Nofile, limit).unwrap();
            let text: Vec<String> = lines.collect();
            let took = begun.elapsed();
            assert!(server.wait().unwrap().success(), "{text:#?}");
            let verdict = text.iter().find_map(|line| line.strip_prefix("OK: ")).unwrap();
            let closed: u32 = verdict.split(' ').next().unwrap().parse().unwrap();
            // Each takes a descriptor for the idle time at least.
            took >= ms(200) * closed / LIMIT as u32
        });
    }
}

/// /dev/full fails each write as a full disk does.
#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let log = "tests/data/apache_excerpt.log";
    let short = ["--connections=20", "--idle-ms=200", "--talk-ms=300", "--grace-ms=10000"];
    for (name, options) in [("replay_log", &[log, "--idle=900"][..]), ("idle_connections", &short)]
    {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(example(name));
        let command = command.args(options).stdout(full).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: {text}");
        assert!(text.contains("No space left on device"), "{name}: {text}");
        assert!(!text.contains("panicked"), "{name}: {text}");
    }
}
