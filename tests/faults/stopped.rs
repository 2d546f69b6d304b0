//! A process that is stopped and continued, and one that gets the processor in slices.

use crate::common::{Record, ms};
use crate::{assert_all_ran, due_one_after_another, quick_timer};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// Starts one of the ignored tests of this program in a process of its own.
pub(crate) fn in_a_process_of_its_own(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of such a process, whose own assertions must hold, and returns what it said.
pub(crate) fn said_by(mut child: Child) -> String {
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
    let child = in_a_process_of_its_own("stopped::the_process_that_is_stopped");
    let id = Pid::from_raw(child.id() as i32);
    let stopped = waitpid(id, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(id, Signal::SIGSTOP));
    std::thread::sleep(stall());
    kill(id, Signal::SIGCONT).unwrap();
    assert!(said_by(child).contains("all in order"));
}

/// The deadlines take three quarters of the stop.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_that_is_stopped() {
    let (timer, span) = (quick_timer(), stall() * 3 / 4);
    let ran = due_one_after_another(&timer, span);
    let heartbeat = timer.new_periodic(|| (), ms(1)).unwrap();
    let before = Instant::now();
    raise(Signal::SIGSTOP).unwrap();
    assert!(before.elapsed() >= stall(), "all were due while it was stopped");
    assert!(heartbeat.cancel(), "it has not ended");
    assert_all_ran(&timer, &ran);
    println!("all in order");
}

/// Stopped for 30 ms, then running for 5 ms, again and again: like a container whose quota is used up.
#[test]
fn rule_09_a_process_that_runs_in_slices_loses_no_wake_up() {
    let mut child = in_a_process_of_its_own("stopped::the_process_that_runs_in_slices");
    let id = Pid::from_raw(child.id() as i32);
    while child.try_wait().unwrap().is_none() {
        for (signal, millis) in [(Signal::SIGSTOP, 30), (Signal::SIGCONT, 5)] {
            // It has not been waited for, so its number belongs to no other process.
            kill(id, signal).unwrap();
            std::thread::sleep(ms(millis));
        }
    }
    let said = said_by(child);
    assert!(said.contains("no wake-up lost"), "{said}");
    println!("{said}");
}

/// `.ci/platforms` runs it under a quota.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_process_that_runs_in_slices() {
    wakes_in_time(&quick_timer());
    #[cfg(all(target_os = "linux", feature = "boottime"))]
    {
        let builder = HashedWheelTimer::builder().tick_duration(ms(1));
        wakes_in_time(&builder.clock(wheelwork::time::BoottimeClock).build().unwrap());
    }
    println!("no wake-up lost");
}

/// Each timeout is sooner than all others, so it has to wake the worker, which sleeps for an hour.
fn wakes_in_time(timer: &HashedWheelTimer) {
    const LOST: Duration = Duration::from_secs(60);
    let far = timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
    let (sender, ran) = mpsc::channel();
    for n in 0..60 {
        let sender = sender.clone();
        timer.new_timeout(move || sender.send(n).unwrap(), ms(n % 4)).unwrap();
        assert_eq!(ran.recv_timeout(LOST), Ok(n), "a wake-up was lost");
    }
    let ran: Record<_> = due_one_after_another(timer, ms(750));
    assert!(far.cancel());
    assert_all_ran(timer, &ran);
    let late = timer.metrics().lateness;
    let [p50, p99] = [0.5, 0.99].map(|part| late.quantile(part));
    println!("lateness of 435 timeouts: p50 {p50:?}, p99 {p99:?}, at most {:?}", late.max());
}
