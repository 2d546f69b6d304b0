//! Faults of the environment, and what a timer guarantees in each: a stopped process, a limit on threads
//! or descriptors, busy cores, a full disk.
//!
//! Other files have three more: a worker thread without address space (`build.rs`), a clock that jumps a
//! year (`schedule.rs`), and a storm of cancels (`memory.rs`).

mod common;
#[cfg(target_os = "linux")]
#[path = "faults/limits.rs"]
mod limits;
#[cfg(unix)]
#[path = "faults/stopped.rs"]
mod stopped;

use common::{Record, assert_conserved, blocking_task, eventually, ms};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::executor::ThreadPool;

const COUNT: u32 = 375;

/// Schedules timeouts that are due one after another, evenly over `span`.
fn due_one_after_another(timer: &HashedWheelTimer, span: Duration) -> Record<(Instant, Instant)> {
    let ran = Record::new();
    let start = timer.now();
    for n in 0..COUNT {
        let due = start + span * n / COUNT;
        let (record, weak) = (ran.clone(), timer.downgrade());
        let now = move || weak.upgrade().map_or_else(Instant::now, |timer| timer.now());
        timer.new_timeout_at(move || record.push((due, now())), due).unwrap();
    }
    ran
}

/// Asserts that all of them ran, none early, in the order of their ticks.
fn assert_all_ran(timer: &HashedWheelTimer, ran: &Record<(Instant, Instant)>) {
    eventually("all have run", || ran.len() == COUNT as usize);
    let ran = ran.take();
    assert!(ran.iter().all(|(due, at)| at >= due), "early");
    assert!(ran.is_sorted(), "out of order");
    eventually("none is pending", || timer.pending_timeouts() == 0);
    assert_conserved(timer);
}

fn quick_timer() -> HashedWheelTimer {
    HashedWheelTimer::builder().tick_duration(ms(1)).ticks_per_wheel(64).build().unwrap()
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
        let ran = due_one_after_another(&timer, ms(750));
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
