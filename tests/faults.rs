//! What the surroundings do to a timer, and what it promises then.
//!
//! A thread that cannot start is in `build.rs`, a clock that jumps a year in `schedule.rs`, a storm
//! of cancels in `memory.rs`.
#![cfg(unix)]

mod common;

use common::{Record, assert_conserved, eventually, ms};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::executor::ThreadPool;

/// Every 2 ms for three quarters of a second a timeout is due, and all are scheduled at once.
fn due_one_after_another(timer: &HashedWheelTimer) -> Record<(Instant, Instant)> {
    let ran = Record::new();
    let start = Instant::now();
    for n in 0..375 {
        let due = start + ms(2 * n);
        let record = ran.clone();
        timer.new_timeout_at(move || record.push((due, Instant::now())), due).unwrap();
    }
    ran
}

/// Rules 1, 2 and 7: all ran, none early, and in the order of their ticks.
fn assert_all_ran(timer: &HashedWheelTimer, ran: &Record<(Instant, Instant)>) {
    eventually("all have run", || ran.len() == 375);
    let ran = ran.take();
    assert!(ran.iter().all(|(due, at)| at >= due), "early");
    assert!(ran.is_sorted(), "out of order");
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(timer);
}

fn quick_timer() -> HashedWheelTimer {
    HashedWheelTimer::builder().tick_duration(ms(1)).ticks_per_wheel(64).build().unwrap()
}

/// `WHEELWORK_STALL_SECONDS` makes it longer than the default of 1 s.
#[test]
fn a_process_that_is_stopped_and_continued_catches_up_in_order() {
    let stall = std::env::var("WHEELWORK_STALL_SECONDS").ok();
    let stall = stall.map_or(1, |s| s.parse().expect("a number of seconds"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_stopped", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success(), "kill {name}");
    };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("scheduled")), "the child has begun");
    std::thread::sleep(ms(100));
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(stall));
    signal("-CONT");
    assert!(lines.any(|line| line.contains("all in order")), "the child's own assertions hold");
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_that_is_stopped() {
    let timer = quick_timer();
    let ran = due_one_after_another(&timer);
    println!("scheduled");
    assert_all_ran(&timer, &ran);
    println!("all in order");
}

#[test]
fn with_every_core_busy_nothing_is_early_or_lost() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * num_cpus::get() {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
        let timer = quick_timer();
        let ran = due_one_after_another(&timer);
        eventually("all have run", || ran.len() == 375);
        stop.store(true, SeqCst);
        assert_all_ran(&timer, &ran);
    });
}

/// Inline, a task that blocks holds up all others, and they then run in order; on a pool it takes one
/// thread of the pool and nothing else.
#[test]
fn a_task_that_blocks_holds_up_its_own_thread_alone() {
    let pool = ThreadPool::with_size(2, 1024).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1));
    let pooled = builder.clone().executor(pool).build().unwrap();
    let inline = builder.build().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let blocking = move || _ = gate.recv();
    pooled.new_timeout(blocking, Duration::ZERO).unwrap();
    let ran = Record::new();
    for n in 0..20 {
        pooled.new_timeout(ran.note(n), ms(2)).unwrap();
    }
    eventually("the others have run", || ran.len() == 20);
    assert_eq!(pooled.metrics().refused, 0);
    release.send(()).unwrap();

    let (release, gate) = mpsc::channel::<()>();
    let (started, is_running) = mpsc::channel();
    let blocking = move || {
        started.send(()).unwrap();
        let _ = gate.recv();
    };
    inline.new_timeout(blocking, Duration::ZERO).unwrap();
    is_running.recv().unwrap();
    let (held_up, start) = (Record::new(), Instant::now() + ms(20));
    for n in 0..20 {
        inline.new_timeout_at(held_up.note(n), start - ms(n)).unwrap();
    }
    std::thread::sleep(ms(40));
    assert_eq!(held_up.len(), 0, "the worker is busy");
    release.send(()).unwrap();
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

/// /dev/full fails each write as a full disk does.
#[test]
#[cfg(target_os = "linux")]
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

/// Cargo builds the examples next to the tests.
#[track_caller]
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its path");
    let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
    let example = profile.join("examples").join(name);
    assert!(example.exists(), "`cargo test` builds {}, `--test` alone does not", example.display());
    example
}
