//! Timers in tasks on a runtime of two worker threads.

use super::{Figures, batches, fire};
use crate::delays;
use crate::plan::Job;
use crate::rivals::sleeps::Spawned;
use crate::rivals::{Rival, Sleep};
use crate::sizes::Sizes;
use std::future::{poll_fn, ready};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, repeat};
use tokio::runtime::Runtime;
use tokio::task::unconstrained;

pub const WORKERS: usize = 2;
/// No limit on a future ends within a measurement.
const LIMIT: Duration = Duration::from_secs(5);

pub fn workload<S: Sleep>(job: &Job) -> Figures {
    if job.workload.name == "async_many" {
        let over = Duration::from_millis(job.sizes.waking_ms);
        let timer = Spawned::<S>::start(job.tick());
        return fire::spread(timer, job.count("sleeping"), over, job.sizes);
    }
    let runtime = S::runtime(WORKERS);
    let n = job.sizes.batch;
    let (tasks, sizes) = (job.count("tasks"), job.sizes);
    let crew = Crew { runtime: &runtime, tasks, operations: n, sizes };
    let nanos = match (&*job.workload.name, job.value("future")) {
        ("async_sleep", _) => crew.measure(|_| create_poll_drop::<S>(n)),
        ("async_reset", _) => crew.measure(|_| reset_poll::<S>(n)),
        (_, "ready") => crew.measure(|_| limited_ready::<S>(n)),
        (_, "ready_read") => crew.measure(|_| limited_ready_read::<S>(n)),
        _ => {
            let operations = n / 10;
            Crew { operations, ..crew }.measure(|_| limited_waiting_read::<S>(operations))
        }
    };
    let mut figures = vec![("ns_per_op", nanos)];
    if job.value("future") == "ready" {
        figures.push(("beyond_clock_ns", nanos - crew.measure(|_| read_clock(n))));
    }
    Ok(figures)
}

/// Tasks that each perform `operations` operations in a batch.
pub struct Crew<'a> {
    pub runtime: &'a Runtime,
    pub tasks: u64,
    pub operations: u64,
    pub sizes: &'a Sizes,
}

impl Crew<'_> {
    /// Core time of one operation, in nanoseconds. `work` gets the number of its task.
    pub fn measure<F: Future<Output = ()> + Send + 'static>(&self, work: impl Fn(u64) -> F) -> f64 {
        let nanos = batches::median(self.sizes, || {
            // A runtime makes a task yield after some 100 polls; here a batch is not interrupted.
            let crew = (0..self.tasks).map(|number| unconstrained(work(number)));
            self.runtime.block_on(all_at_once(crew.collect()))
        });
        let at_once = self.tasks.min(WORKERS as u64);
        nanos * at_once as f64 / (self.tasks * self.operations) as f64
    }
}

/// From the spawn of the first task to the end of the last. They are spawned from outside the runtime: a task that
/// another one wakes waits for that one's thread, and these do not end soon.
async fn all_at_once<F: Future<Output = ()> + Send + 'static>(crew: Vec<F>) -> Duration {
    let begin = Instant::now();
    let running: Vec<_> = crew.into_iter().map(tokio::spawn).collect();
    for task in running {
        task.await.expect("a task does not panic");
    }
    begin.elapsed()
}

async fn read_clock(n: u64) {
    for _ in 0..n {
        black_box(Instant::now());
    }
}

async fn create_poll_drop<S: Sleep>(n: u64) {
    poll_fn(|context| {
        for i in 0..n {
            let sleep = pin!(S::sleep_on_stack(delays::usual(i)));
            assert!(sleep.poll(context).is_pending(), "a sleep ended at once");
        }
        Poll::Ready(())
    })
    .await;
}

/// As in a loop that pushes a limit back on each event. Some sleeps are armed by the poll only.
async fn reset_poll<S: Sleep>(n: u64) {
    let mut sleep = S::sleep(delays::PUSHED_BACK);
    poll_fn(|context| {
        for i in 0..n {
            let delay = delays::usual(i);
            if !S::reset(&mut sleep, delay) {
                sleep = S::sleep(delay);
            }
            assert!(Pin::new(&mut sleep).poll(context).is_pending(), "a sleep ended at once");
        }
        Poll::Ready(())
    })
    .await;
}

async fn limited_ready<S: Sleep>(n: u64) {
    for i in 0..n {
        black_box(S::timeout(LIMIT, ready(black_box(i))).await);
    }
}

async fn limited_ready_read<S: Sleep>(n: u64) {
    let mut source = repeat(1);
    for _ in 0..n {
        let read = S::timeout(LIMIT, source.read_u8()).await;
        black_box(read.expect("the read is ready").expect("the source has no end"));
    }
}

/// A byte goes to an echo and comes back; only the read of the answer has a limit.
async fn limited_waiting_read<S: Sleep>(n: u64) {
    let (mut client, mut server) = duplex(64);
    let echo = tokio::spawn(async move {
        while let Ok(byte) = server.read_u8().await {
            server.write_u8(byte).await.expect("the client reads");
        }
    });
    for _ in 0..n {
        client.write_u8(1).await.expect("the echo reads");
        let answer = S::timeout(LIMIT, client.read_u8()).await;
        answer.expect("the answer comes in time").expect("the echo answers");
    }
    drop(client);
    echo.await.expect("the echo does not panic");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::wheelwork::Sleeping;
    use allocation_counter::measure;
    use std::task::{Context, Waker};

    /// Counts the allocations of a sleep, a reset and a timeout. Each is done twice, and the second is
    /// counted: the first may prepare something once for its thread.
    fn allocations<S: Sleep>() -> [u64; 3] {
        let runtime = S::runtime(1);
        let _context = runtime.enter();
        let count = |one: &mut dyn FnMut()| {
            one();
            measure(one).count_total
        };
        let mut context = Context::from_waker(Waker::noop());
        let created = count(&mut || _ = pin!(S::sleep_on_stack(LIMIT)).poll(&mut context));
        let mut sleep = S::sleep(LIMIT);
        let reset = count(&mut || {
            if !S::reset(&mut sleep, LIMIT) {
                sleep = S::sleep(LIMIT);
            }
            _ = Pin::new(&mut sleep).poll(&mut context);
        });
        let limit = count(&mut || _ = pin!(S::timeout(LIMIT, ready(()))).poll(&mut context));
        [created, reset, limit]
    }

    #[test]
    fn a_sleep_a_reset_and_a_timeout_of_ours_allocate_nothing() {
        assert_eq!(allocations::<Sleeping>(), [0, 0, 0]);
    }

    #[cfg(feature = "rivals")]
    #[test]
    fn the_readme_tells_how_often_the_others_allocate() {
        use crate::rivals::{others::*, sleeps::Tokio};
        assert_eq!(allocations::<Tokio<false>>(), [0, 0, 0]);
        assert_eq!(allocations::<Pingora>(), [0, 1, 0]);
        assert_eq!(allocations::<AsyncIo>(), [0, 0, 0]);
        assert_eq!(allocations::<FuturesTimer>(), [1, 0, 1]);
    }
}
