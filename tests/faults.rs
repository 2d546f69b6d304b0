//! Faults of the environment, and what a timer guarantees in each: a stopped process, a limit on threads
//! or descriptors, busy cores, a full disk.
//!
//! Other files have three more: a worker thread without address space (`build.rs`), a clock that jumps a
//! year (`schedule.rs`), and a storm of cancels (`memory.rs`).
#![cfg(unix)]

mod common;

use common::examples::example;
use common::{Record, assert_conserved, blocking_task, eventually, ms};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, Uid, setuid};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::executor::{PoolError, ThreadPool};
use wheelwork::{BuildError, HashedWheelTimer};

const COUNT: u32 = 375;
const SPAN: Duration = Duration::from_millis(750);

/// Schedules timeouts that are due one after another, every 2 ms for three quarters of a second.
fn due_one_after_another(timer: &HashedWheelTimer) -> Record<(Instant, Instant)> {
    let ran = Record::new();
    let start = Instant::now();
    for n in 0..COUNT {
        let due = start + SPAN * n / COUNT;
        let record = ran.clone();
        timer.new_timeout_at(move || record.push((due, Instant::now())), due).unwrap();
    }
    ran
}

/// Asserts that all of them ran, none early, in the order of their ticks.
fn assert_all_ran(timer: &HashedWheelTimer, ran: &Record<(Instant, Instant)>) {
    eventually("all have run", || ran.len() == COUNT as usize);
    let ran = ran.take();
    assert!(ran.iter().all(|(due, at)| at >= due), "early");
    assert!(ran.is_sorted(), "out of order");
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(timer);
}

fn quick_timer() -> HashedWheelTimer {
    HashedWheelTimer::builder().tick_duration(ms(1)).ticks_per_wheel(64).build().unwrap()
}

/// Starts one of the ignored tests of this file in a process of its own.
fn in_a_process_of_its_own(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of such a process, whose own assertions must hold, and returns what it said.
fn said_by(mut child: Child) -> String {
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

fn stall() -> Duration {
    let seconds = std::env::var("WHEELWORK_STALL_SECONDS").ok();
    Duration::from_secs(seconds.map_or(1, |s| s.parse().expect("a number of seconds")))
}

/// `WHEELWORK_STALL_SECONDS` makes it longer than the default of 1 s.
#[test]
fn rule_07_a_process_that_is_stopped_and_continued_catches_up_in_order() {
    let child = in_a_process_of_its_own("the_process_that_is_stopped");
    let id = Pid::from_raw(child.id() as i32);
    let stopped = waitpid(id, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(id, Signal::SIGSTOP));
    std::thread::sleep(stall());
    kill(id, Signal::SIGCONT).unwrap();
    assert!(said_by(child).contains("all in order"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_that_is_stopped() {
    let timer = quick_timer();
    let ran = due_one_after_another(&timer);
    let before = Instant::now();
    raise(Signal::SIGSTOP).unwrap();
    assert!(before.elapsed() >= stall() && stall() > SPAN, "all were due while it was stopped");
    assert_all_ran(&timer, &ran);
    println!("all in order");
}

/// The limit on processes counts threads. A process that it does not bind says so.
#[test]
#[cfg(target_os = "linux")]
fn rule_09_a_process_at_its_thread_limit_gets_an_error_and_works_once_it_is_lifted() {
    let said = said_by(in_a_process_of_its_own("the_process_that_may_start_no_thread"));
    assert!(said.contains("refused") || said.contains("skipped"), "{said}");
    if said.contains("skipped") {
        eprintln!("skipped: no limit of processes binds here");
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
#[cfg(target_os = "linux")]
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
fn rule_02_no_timeout_is_early_or_lost_while_every_core_is_busy() {
    /// Ends the spinning threads, also if an assertion fails.
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let (stop, spinning) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let threads = 2 * num_cpus::get();
        for _ in 0..threads {
            scope.spawn(|| {
                spinning.fetch_add(1, SeqCst);
                while !stop.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
        eventually("every core is busy", || spinning.load(SeqCst) == threads);
        let timer = quick_timer();
        let ran = due_one_after_another(&timer);
        assert_all_ran(&timer, &ran);
    });
}

/// Inline, a task that blocks delays all others, which then run in order. On a pool it occupies one
/// thread of the pool.
#[test]
fn rule_05_a_task_that_blocks_delays_only_its_own_thread() {
    let pool = ThreadPool::with_size(2, 1024).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1));
    let pooled = builder.clone().executor(pool).build().unwrap();
    let inline = builder.build().unwrap();
    let (blocking, gate) = blocking_task();
    pooled.new_timeout(blocking, Duration::ZERO).unwrap();
    let ran = Record::new();
    for n in 0..20 {
        pooled.new_timeout(ran.note(n), ms(2)).unwrap();
    }
    eventually("the others have run", || ran.len() == 20);
    assert_eq!(pooled.metrics().refused, 0);
    gate.open();

    let (blocking, gate) = blocking_task();
    inline.new_timeout(blocking, Duration::ZERO).unwrap();
    gate.wait();
    let (held_up, start) = (Record::new(), Instant::now() + ms(20));
    for n in 0..20 {
        inline.new_timeout_at(held_up.note(n), start - ms(n)).unwrap();
    }
    std::thread::sleep(ms(40));
    assert_eq!(held_up.len(), 0, "the worker is busy");
    gate.open();
    eventually("the others have run", || held_up.len() == 20);
    let order = held_up.take();
    assert!(order.iter().rev().is_sorted(), "in the order of their ticks: {order:?}");
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
#[cfg(target_os = "linux")]
fn a_server_out_of_descriptors_serves_one_connection_after_another() {
    use rustix::process::{Pid, Resource as Limited, Rlimit, prlimit};
    const LIMIT: u64 = 28;
    let options = ["--connections=120", "--idle-ms=200", "--talk-ms=200", "--grace-ms=10000"];
    for kind in ["mio", "threaded", "tokio"] {
        let mut command = Command::new(example("idle_connections"));
        let command = command.args(options).args(["--server", kind]).stdout(Stdio::piped());
        let begun = Instant::now();
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().contains("120 clients"), "the server has begun");
        let hard = getrlimit(Resource::RLIMIT_NOFILE).unwrap().1;
        let limit = Rlimit { current: Some(LIMIT), maximum: Some(hard) };
        prlimit(Some(Pid::from_child(&server)), Limited::Nofile, limit).unwrap();
        let text: Vec<String> = lines.collect();
        let took = begun.elapsed();
        assert!(server.wait().unwrap().success(), "{text:#?}");
        let verdict = text.iter().find_map(|line| line.strip_prefix("OK: ")).unwrap();
        let closed: u32 = verdict.split(' ').next().unwrap().parse().unwrap();
        // Each takes a descriptor for the idle time at least, so the limit did bind.
        assert!(took >= ms(200) * closed / LIMIT as u32, "{kind}: {closed} in {took:?}");
    }
}

/// /dev/full fails each write as a full disk does.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_no_panic() {
    let log = "tests/data/apache_excerpt.log";
    let short = ["--connections=20", "--idle-ms=200", "--talk-ms=300", "--grace-ms=10000"];
    for (name, options) in [
        ("replay_log", &[log, "--idle=900"][..]),
        ("idle_connections", &short),
        ("idle_cost", &["silent", "--connections=20", "--seconds=1"]),
    ] {
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
