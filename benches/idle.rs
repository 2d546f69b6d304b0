//! Claim: a touch with a known time costs at most a few nanoseconds, and a touch without one hardly more
//! than a clock read. The two usual ways cost many times as much.
//!
//! These are a `tokio::time::timeout` around every read, and a cancel and a schedule for every read. The
//! reads themselves are empty.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};

const IDLE: Duration = Duration::from_secs(60);

struct Watched {
    idle: IdleTimeouts<u64>,
    watches: Vec<Watch>,
}

fn watched(count: u64) -> Watched {
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    let idle = IdleTimeouts::new(&timer, |_: &mut u64, _| Answer::KeepWatching);
    let policy = IdlePolicy::new().both(IDLE);
    let watch = |id| idle.watch(id, &policy).expect("the timer runs");
    Watched { watches: (0..count).map(watch).collect(), idle }
}

fn touches(c: &mut Criterion) {
    let mut group = c.benchmark_group("touch");
    let one = watched(1);
    let (now, instant) = (one.idle.now(), Instant::now());
    let watch = &one.watches[0];
    group.bench_function("record_read_at, a timestamp", |b| {
        b.iter(|| watch.record_read_at(black_box(now)))
    });
    group.bench_function("touch_at, a timestamp", |b| b.iter(|| watch.touch_at(black_box(now))));
    group.bench_function("record_read_at, an instant", |b| {
        b.iter(|| watch.record_read_at(black_box(instant)))
    });
    group.bench_function("record_read", |b| b.iter(|| watch.record_read()));
    group.bench_function("floor: clock read", |b| b.iter(Instant::now));
    // In an order without a pattern, to include cache misses.
    for count in [1000, 1_000_000] {
        let all = watched(count);
        let mut i = 0;
        group.bench_function(
            BenchmarkId::new("record_read_at, a timestamp, any one of", count),
            |b| {
                b.iter(|| {
                    i = (i + 514_229) % all.watches.len();
                    all.watches[i].record_read_at(black_box(now));
                });
            },
        );
    }
    group.finish();
}

fn rivals(c: &mut Criterion) {
    let mut group = c.benchmark_group("each read");
    let one = watched(1);
    let now = one.idle.now();
    group.bench_function("idle manager", |b| b.iter(|| one.watches[0].record_read()));
    group.bench_function("idle manager, the time known", |b| {
        b.iter(|| one.watches[0].record_read_at(black_box(now)));
    });

    let timer = HashedWheelTimer::new().expect("a thread can be started");
    let mut timeout = timer.new_timeout(|| (), IDLE).expect("the timer runs");
    group.bench_function("this timer, reschedule", |b| b.iter(|| timeout.reschedule(IDLE)));
    group.bench_function("this timer, cancel and schedule", |b| {
        b.iter(|| {
            timeout.cancel();
            timeout = timer.new_timeout(|| (), IDLE).expect("the timer runs");
        });
    });

    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().build().expect("a runtime");
    let tokio_timeout = |name: &str, group: &mut criterion::BenchmarkGroup<_>, waits: bool| {
        group.bench_function(name, |b| {
            b.iter_custom(|reads| {
                runtime.block_on(async {
                    let begun = Instant::now();
                    for _ in 0..reads {
                        let read = async {
                            if waits {
                                tokio::task::yield_now().await;
                            }
                        };
                        black_box(tokio::time::timeout(IDLE, read).await.is_ok());
                    }
                    begun.elapsed()
                })
            });
        });
    };
    tokio_timeout("tokio timeout, data there", &mut group, false);
    tokio_timeout("tokio timeout, data to wait for", &mut group, true);
    group.bench_function("floor: tokio, a wait without a timeout", |b| {
        b.iter_custom(|reads| {
            runtime.block_on(async {
                let begun = Instant::now();
                for _ in 0..reads {
                    tokio::task::yield_now().await;
                }
                begun.elapsed()
            })
        });
    });
    group.finish();
}

fn comings_and_goings(c: &mut Criterion) {
    let mut group = c.benchmark_group("beside");
    for count in [1, 1_000_000] {
        let all = watched(count);
        let policy = IdlePolicy::new().both(IDLE);
        group.bench_function(BenchmarkId::new("watch and drop", count), |b| {
            b.iter(|| drop(all.idle.watch(0, &policy)));
        });
        group.bench_function(BenchmarkId::new("pause and resume", count), |b| {
            b.iter(|| drop(all.watches[0].pause()));
        });
    }
    group.finish();
}

/// A read of a stream that always has bytes, with and without idle timeouts.
#[cfg(feature = "tokio")]
fn streams(c: &mut Criterion) {
    use std::pin::Pin;
    use std::task::{Context, Waker};
    use tokio::io::{AsyncRead, ReadBuf, repeat};
    use wheelwork::idle::IdleStreams;

    let mut group = c.benchmark_group("stream");
    fn read(stream: &mut (impl AsyncRead + Unpin)) -> bool {
        let mut bytes = [0; 8];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(stream).poll_read(&mut context, &mut ReadBuf::new(&mut bytes)).is_ready()
    }
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    let policy = IdlePolicy::new().both(IDLE);
    let wrapped = IdleStreams::new(&timer).wrap_with(repeat(7), &policy, |_| None);
    let (mut wrapped, mut bare) = (wrapped.expect("the timer runs"), repeat(7));
    group.bench_function("read", |b| b.iter(|| read(black_box(&mut wrapped))));
    group.bench_function("floor: read without idle timeouts", |b| {
        b.iter(|| read(black_box(&mut bare)));
    });
    group.finish();
}

#[cfg(not(feature = "tokio"))]
fn streams(_c: &mut Criterion) {}

criterion_group! {
    name = benches;
    config = kit::criterion();
    targets = touches, streams, rivals, comings_and_goings
}
criterion_main!(benches);
