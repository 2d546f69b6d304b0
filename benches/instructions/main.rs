//! Claim: an operation takes a few hundred instructions. A change that adds a single one shows here.
//!
//! `cargo bench --bench instructions` prints the table. Parts of names select rows: `-- fire reschedule`.
//! It needs valgrind.
//!
//! The bench runs itself under callgrind, as a child that repeats one operation. One child repeats it
//! N times, another 2 N times. The difference divided by N is the cost of one, because the start, the
//! first wake-up of the worker and the first use of memory cancel out. All threads are counted, the
//! kernel is not. Two or three of the instructions belong to the loop.
//!
//! # Reads of the clock
//!
//! A thread that schedules by a delay reads the system's clock every 30 us, and the processor's
//! counter in between (`src/time/quick.rs`). Natively, a thousand operations share such a read. Under
//! callgrind only about ten do, and their number depends on the load of the machine. So the table leaves
//! the reads out. Under callgrind each read is a system call, and callgrind counts these. A third child does
//! the same as the second, but simulates caches. It executes the same instructions more slowly, so it
//! reads the clock more often. The difference between the two is the cost of the additional reads.
//!
//! # What makes the counts differ
//!
//! On one machine, the rows without a delay repeat exactly. The others repeat to within a few instructions,
//! and the row of the handles that are kept to within ten. The counts depend on the compiler and its flags,
//! on the processor, by whose features libc chooses its functions, on the allocator, which serves every boxed
//! task, and on the system's clock: if the clock does not use the processor's counter, every delay reads the
//! clock.

mod workloads;

use std::process::{self, Command};
use std::sync::mpsc;
use std::thread;
use workloads::{OPERATIONS, Operation};

/// The first argument of a child.
const REPEAT: &str = "--repeat";

const N: u64 = 100_000;

const SLOWER: [&str; 2] = ["--cache-sim=yes", "--branch-sim=yes"];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match &arguments[..] {
        [first, name, times] if first == REPEAT => repeat(name, times.parse().expect("a number")),
        _ if !has_valgrind() => println!("skipped: install valgrind to count instructions"),
        parts => print_table(parts),
    }
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

fn print_table(parts: &[String]) {
    println!("| {:<49} | {:>12} |\n|{:-<51}|{:->13}:|", "operation", "instructions", "", "");
    let is_wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    for operation in OPERATIONS.iter().filter(|operation| is_wanted(operation.name)) {
        println!("| {:<49} | {:>12.0} |", operation.name, cost(operation));
    }
}

/// The counts of one run of a child.
struct Counts {
    instructions: f64,
    system_calls: f64,
}

/// Instructions of one operation.
fn cost(operation: &Operation) -> f64 {
    let once = count(operation, N, &[]);
    let twice = count(operation, 2 * N, &[]);
    let mut instructions = twice.instructions - once.instructions;
    if operation.by_delay {
        let slower = count(operation, 2 * N, &SLOWER);
        instructions -= (twice.system_calls - once.system_calls) * cost_of_read(&twice, &slower);
    }
    instructions / N as f64
}

/// Instructions of one read of the clock; 0 if the slower run has not read it more often.
fn cost_of_read(run: &Counts, slower: &Counts) -> f64 {
    let additional = slower.system_calls - run.system_calls;
    let is_significant = additional > N as f64 / 1000.0;
    if is_significant { (slower.instructions - run.instructions) / additional } else { 0.0 }
}

/// Runs a child under callgrind.
fn count(operation: &Operation, times: u64, options: &[&str]) -> Counts {
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-systime=yes"])
        .args(options)
        .arg(std::env::current_exe().expect("its own path"))
        .args([REPEAT, operation.name, &times.to_string()])
        .output()
        .expect("valgrind starts");
    let report = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{report}");
    let event = |name| event(&report, name).unwrap_or_else(|| panic!("no {name} in {report}"));
    Counts { instructions: event("Ir"), system_calls: event("sysCount") }
}

/// Callgrind reports the names of all events in one line, and their counts in the next.
fn event(report: &str, name: &str) -> Option<f64> {
    let line = |title| report.lines().find_map(|line| line.split_once(title)).map(|(_, rest)| rest);
    let mut names = line("Events    : ")?.split_whitespace();
    let mut counts = line("Collected : ")?.split_whitespace();
    counts.nth(names.position(|each| each == name)?)?.parse().ok()
}

/// The child. It exits while the thread is alive, so the end of the thread is not counted.
fn repeat(name: &str, times: u64) {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name).expect("a name");
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        (operation.repeat)(times);
        done.send(()).expect("the main thread waits");
        loop {
            thread::park();
        }
    });
    end.recv().expect("the workload ends");
    process::exit(0);
}
