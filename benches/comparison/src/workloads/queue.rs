//! Delay queues that each belong to a task.

use super::Figures;
use super::tasks::{Crew, WORKERS};
use crate::batches;
use crate::catalogue::Case;
use crate::delays;
use crate::rivals::{DELAY_QUEUE, OURS, Queue, TokioUtil, WheelworkQueue};
use crate::sizes::Sizes;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::unconstrained;

/// From the first insertion of those that expire together to their deadline, for each of them.
const LEAD: Duration = Duration::from_micros(1);

/// `None` if the rival has no queue.
pub fn visit(rival: &str, case: &Case, sizes: &Sizes) -> Option<Figures> {
    match rival {
        OURS => Some(measure::<WheelworkQueue>(case, sizes)),
        DELAY_QUEUE => Some(measure::<TokioUtil>(case, sizes)),
        _ => None,
    }
}

fn measure<Q: Queue>(case: &Case, sizes: &Sizes) -> Figures {
    let runtime = Q::runtime(WORKERS);
    let _context = runtime.enter();
    let (present, tasks) = (case.count("present"), case.count("tasks"));
    let queues: Vec<_> = (0..tasks).map(|_| Arc::new(Mutex::new(filled::<Q>(present)))).collect();
    let crew = Crew { runtime: &runtime, tasks, operations: sizes.batch, sizes };
    let insert_remove =
        crew.measure(|task| insert_and_remove(queues[task as usize].clone(), sizes.batch));
    let mut figures = vec![("ns_per_op", insert_remove)];
    if tasks == 1 {
        let Ok(expire) = batches::median(sizes, || {
            let expired = runtime.spawn(unconstrained(expire::<Q>(present)));
            let took = runtime.block_on(expired).expect("a task does not panic");
            Ok::<_, Infallible>(took)
        });
        figures.push(("expire_ns", expire / present as f64));
    }
    Ok(figures)
}

fn filled<Q: Queue>(present: u64) -> Q {
    let mut queue = Q::new();
    for i in 0..present {
        queue.insert(i, delays::far(i, present));
    }
    queue
}

/// Of values whose deadlines fall among those that are present.
async fn insert_and_remove<Q: Queue>(queue: Arc<Mutex<Q>>, operations: u64) {
    let mut queue = queue.lock().await;
    // A waker waits in the queue, as while its task waits for values.
    let pending = pin!(queue.next()).poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(pending, "a value came out early");
    for i in 0..operations {
        let key = queue.insert(i, delays::among_far(i));
        queue.remove(key);
    }
}

/// From the first value that comes out to the last, of those that are due at one instant.
async fn expire<Q: Queue>(values: u64) -> Duration {
    let mut queue = Q::new();
    let due = Instant::now() + LEAD * values as u32;
    for i in 0..values {
        queue.insert(i, due.saturating_duration_since(Instant::now()));
    }
    queue.next().await;
    let begin = Instant::now();
    for _ in 1..values {
        queue.next().await;
    }
    begin.elapsed()
}
