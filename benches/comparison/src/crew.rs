//! Producer threads that live as long as a measurement and work in batches, begun together.

use crate::criterion_run;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use std::io;
use std::path::Path;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// A micro-bench: what each producer does.
pub trait Routine: Sync {
    type State<H: 'static>;

    /// Before the first batch; `producer` counts from 0.
    fn prepare<P: Producer>(&self, producer: u64, timer: &mut P) -> Self::State<P::Handle>;

    /// The operations that are timed.
    fn batch<P: Producer>(
        &self,
        timer: &mut P,
        state: &mut Self::State<P::Handle>,
        operations: u64,
    );

    /// After each batch, untimed.
    fn tidy<P: Producer>(&self, _timer: &mut P, _state: &mut Self::State<P::Handle>) {}
}

/// Nanoseconds for one operation of one producer, while `producers` of them are at work, each with
/// `operations` in a batch.
pub fn measure<R: Rival>(
    timer: &R,
    routine: &impl Routine,
    producers: u64,
    operations: u64,
    sizes: &Sizes,
    folder: &Path,
) -> io::Result<f64> {
    let start = Barrier::new(producers as usize);
    thread::scope(|scope| {
        let crew: Vec<_> = (0..producers)
            .map(|number| Member::spawn(scope, timer, routine, number, operations, &start))
            .collect();
        let batch = criterion_run::median("operation", sizes, folder, &mut |bencher| {
            bencher.iter_custom(|batches| (0..batches).map(|_| run_batch(&crew)).sum())
        })?;
        Ok(batch / operations as f64)
    })
}

struct Member {
    orders: Sender<()>,
    spans: Receiver<(Instant, Instant)>,
}

impl Member {
    fn spawn<'scope, R: Rival>(
        scope: &'scope Scope<'scope, '_>,
        timer: &'scope R,
        routine: &'scope impl Routine,
        number: u64,
        operations: u64,
        start: &'scope Barrier,
    ) -> Self {
        let (orders, ordered) = channel();
        let (done, spans) = channel();
        scope.spawn(move || {
            let mut producer = timer.producer();
            let mut state = routine.prepare(number, &mut producer);
            for () in ordered {
                start.wait();
                let begin = Instant::now();
                routine.batch(&mut producer, &mut state, operations);
                let end = Instant::now();
                routine.tidy(&mut producer, &mut state);
                if done.send((begin, end)).is_err() {
                    break;
                }
            }
        });
        Self { orders, spans }
    }
}

/// From the first start to the last end.
fn run_batch(crew: &[Member]) -> Duration {
    for member in crew {
        member.orders.send(()).expect("the producer waits for it");
    }
    let spans = crew.iter().map(|member| member.spans.recv().expect("the producer goes on"));
    let (begin, end) = spans
        .reduce(|(begin, end), span| (begin.min(span.0), end.max(span.1)))
        .expect("there is a producer");
    end - begin
}
