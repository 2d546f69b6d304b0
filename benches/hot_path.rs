//! Claim: scheduling, cancelling and rescheduling cost tens of nanoseconds, however many timeouts are
//! pending.
//!
//! Each operation runs beside 0 and beside 1,000,000 far timeouts. The figures should differ only by cache
//! misses. Two more rows show the floor: a clock read, which scheduling by a delay needs, and a free lock,
//! which no operation takes.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};
use wheelwork::{HashedWheelTimer, Timeout};

const FAR: Duration = Duration::from_secs(3600);
const WINDOW: usize = 100_000;

/// Delays from 1 to 60 s, in an order without a pattern.
fn delay(i: u64) -> Duration {
    Duration::from_millis(1000 + i.wrapping_mul(2_654_435_761) % 59_000)
}

fn timer_with(pending: usize) -> HashedWheelTimer {
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    for _ in 0..pending {
        timer.new_timeout(|| (), FAR).expect("the timer runs");
    }
    timer
}

fn schedule(timer: &HashedWheelTimer, i: u64) -> Timeout {
    timer.new_timeout(|| (), delay(i)).expect("the timer runs")
}

fn operations(c: &mut Criterion) {
    for pending in [0, 1_000_000] {
        let timer = timer_with(pending);
        let mut i = 0;
        let mut next = || {
            i += 1;
            i
        };
        let mut group = c.benchmark_group("beside");
        group.bench_function(BenchmarkId::new("schedule", pending), |b| {
            b.iter_batched(
                || Vec::with_capacity(10_000),
                |mut kept| {
                    (0..10_000).for_each(|_| kept.push(schedule(&timer, next())));
                    kept
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new("schedule+cancel", pending), |b| {
            b.iter(|| schedule(&timer, next()).cancel());
        });
        group.bench_function(BenchmarkId::new("rolling", pending), |b| {
            let mut window: VecDeque<_> = (0..WINDOW).map(|_| schedule(&timer, next())).collect();
            b.iter(|| {
                window.pop_front().map(|oldest| oldest.cancel());
                window.push_back(schedule(&timer, next()));
            });
        });
        group.bench_function(BenchmarkId::new("reschedule", pending), |b| {
            let window: Vec<_> = (0..WINDOW).map(|_| schedule(&timer, next())).collect();
            b.iter(|| window[next() as usize % WINDOW].reschedule(FAR));
        });
        group.finish();
    }
}

fn floor(c: &mut Criterion) {
    let lock = std::sync::Mutex::new(0u64);
    c.bench_function("floor/clock read", |b| b.iter(Instant::now));
    c.bench_function("floor/lock", |b| b.iter(|| *black_box(&lock).lock().unwrap() += 1));
}

criterion_group! {
    name = benches;
    config = kit::criterion();
    targets = floor, operations
}
criterion_main!(benches);
