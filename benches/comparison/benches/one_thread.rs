//! Claim: alone on one thread, each operation of the wheels costs less than that of tokio-util's `DelayQueue`.
//!
//! `cargo bench -p comparison --features rivals --bench one_thread`. Each structure is owned by one thread and
//! is told deadlines as instants. All values are 8 bytes.
//!
//! Each round measures every structure once, in turn, by the CPU time of the thread. The table has the medians,
//! and the median of the ratios to the hashed wheel of the same round. Compare the ratios: the load of the machine
//! changes the times.

use kit::{Random, cpu, median};
use std::future::poll_fn;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_util::time::{DelayQueue, delay_queue};
use wheelwork::wheel::{DelayLine, Key, Ticks, TimedWheel, Unlimited, Wheel};

const ROUNDS: usize = 21;

/// The number of values in the structure while another one is inserted and removed.
const PRESENT: usize = 100_000;

const TICK: Duration = Duration::from_millis(1);

/// The delay of the delay line, and the mean one of the others.
const DELAY: Duration = Duration::from_secs(30);

/// A structure on one thread.
trait Local {
    type Key;
    fn insert(&mut self, deadline: Instant, value: u64) -> Self::Key;
    fn remove(&mut self, key: Self::Key);
    fn push_back(&mut self, key: Self::Key, deadline: Instant) -> Self::Key;
    /// Takes out everything. All of it is due.
    fn expire(&mut self) -> usize;
}

struct Wheels<S>(TimedWheel<u64, S>);

impl<S: Unlimited> Wheels<S> {
    fn on(wheel: Wheel<u64, S>) -> Self {
        Self(TimedWheel::new(wheel, Ticks::new(TICK, Instant::now()).expect("not zero")))
    }
}

impl<S: Unlimited> Local for Wheels<S> {
    type Key = Key;

    fn insert(&mut self, deadline: Instant, value: u64) -> Key {
        self.0.insert_at(deadline, value)
    }

    fn remove(&mut self, key: Key) {
        black_box(self.0.wheel_mut().remove(key));
    }

    fn push_back(&mut self, key: Key, deadline: Instant) -> Key {
        assert!(self.0.reschedule_at(key, deadline));
        key
    }

    fn expire(&mut self) -> usize {
        self.0.expire(Instant::now(), |_, expired| _ = black_box(expired.value))
    }
}

/// Its delays are all the same, so it works out the time of the insertion.
struct Line(DelayLine<u64>, Ticks);

impl Line {
    fn new() -> Self {
        let start = Instant::now();
        let delay = DELAY.as_millis() as u64;
        Self(DelayLine::new(delay), Ticks::new(TICK, start).expect("not zero"))
    }

    fn now(&self, deadline: Instant) -> u64 {
        self.1.not_before(deadline).saturating_sub(self.0.delay())
    }
}

impl Local for Line {
    type Key = Key;

    fn insert(&mut self, deadline: Instant, value: u64) -> Key {
        self.0.insert(self.now(deadline), value)
    }

    fn remove(&mut self, key: Key) {
        black_box(self.0.remove(key));
    }

    fn push_back(&mut self, key: Key, deadline: Instant) -> Key {
        assert!(self.0.renew(self.now(deadline), key));
        key
    }

    fn expire(&mut self) -> usize {
        self.0.expire(u64::MAX, |_, expired| _ = black_box(expired.value))
    }
}

struct TokioUtil<'a>(DelayQueue<u64>, &'a Runtime);

impl Local for TokioUtil<'_> {
    type Key = delay_queue::Key;

    fn insert(&mut self, deadline: Instant, value: u64) -> Self::Key {
        self.0.insert_at(value, deadline.into())
    }

    fn remove(&mut self, key: Self::Key) {
        black_box(self.0.remove(&key));
    }

    fn push_back(&mut self, key: Self::Key, deadline: Instant) -> Self::Key {
        self.0.reset_at(&key, deadline.into());
        key
    }

    fn expire(&mut self) -> usize {
        let (queue, mut count) = (&mut self.0, 0);
        self.1.block_on(poll_fn(|cx| {
            while let Poll::Ready(next) = queue.poll_expired(cx) {
                let Some(expired) = next else { return Poll::Ready(()) };
                black_box(expired.into_inner());
                count += 1;
            }
            Poll::Pending
        }));
        count
    }
}

struct Nexus(nexus_timer::Wheel<u64>, Vec<u64>);

impl Local for Nexus {
    /// The crate asserts that no handle is dropped.
    type Key = ManuallyDrop<nexus_timer::TimerHandle<u64>>;

    fn insert(&mut self, deadline: Instant, value: u64) -> Self::Key {
        ManuallyDrop::new(self.0.schedule(deadline, value))
    }

    fn remove(&mut self, key: Self::Key) {
        black_box(self.0.cancel(ManuallyDrop::into_inner(key)));
    }

    fn push_back(&mut self, key: Self::Key, deadline: Instant) -> Self::Key {
        ManuallyDrop::new(self.0.reschedule(ManuallyDrop::into_inner(key), deadline))
    }

    fn expire(&mut self) -> usize {
        let mut count = 0;
        while !self.0.is_empty() {
            count += self.0.poll(Instant::now(), &mut self.1);
            black_box(&self.1);
            self.1.clear();
        }
        count
    }
}

/// Nanoseconds for one operation: insert and remove, push back, expire.
type Costs = [f64; 3];

/// The time of `repeat`, divided by the number of operations that it returns.
fn each(repeat: impl FnOnce() -> usize) -> f64 {
    let begin = cpu::of_thread();
    let operations = repeat();
    (cpu::of_thread() - begin) * 1e9 / operations as f64
}

fn measure<L: Local>(mut empty: impl FnMut() -> L) -> Costs {
    let (start, mut random) = (Instant::now(), Random(1));
    let mut around = move || start + DELAY + Duration::from_micros(random.below(10_000_000));
    let mut local = empty();
    let mut keys: Vec<_> = (0..PRESENT as u64).map(|n| local.insert(around(), n)).collect();
    let insert_and_remove = each(|| {
        for n in 0..PRESENT as u64 {
            let key = local.insert(around(), n);
            local.remove(key);
        }
        PRESENT
    });
    let push_back = each(|| {
        let mut later = Duration::ZERO;
        let pushed = keys.drain(..).map(|key| {
            later += Duration::from_micros(1);
            local.push_back(key, start + 2 * DELAY + later)
        });
        keys = pushed.collect();
        PRESENT
    });
    std::mem::forget((local, keys)); // nexus-timer asserts that a wheel is empty when it is dropped

    let (mut local, mut random) = (empty(), Random(2));
    let soon = Instant::now();
    (0..PRESENT as u64).for_each(|n| {
        let deadline = soon + Duration::from_micros(random.below(100_000));
        std::mem::forget(local.insert(deadline, n));
    });
    std::thread::sleep((soon + Duration::from_millis(110)).duration_since(Instant::now()));
    let expire = each(|| {
        let count = local.expire();
        assert_eq!(count, PRESENT);
        count
    });
    std::mem::forget(local);
    [insert_and_remove, push_back, expire]
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _context = runtime.enter();
    let nexus = || nexus_timer::WheelBuilder::new().tick_duration(TICK).unbounded(4096);
    let names = [
        "hashed wheel",
        "hierarchical wheel",
        "delay line",
        "tokio-util DelayQueue",
        "nexus-timer",
    ];
    let mut rounds: Vec<Vec<Costs>> = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(vec![
            measure(|| Wheels::on(Wheel::hashed(512).expect("memory"))),
            measure(|| Wheels::on(Wheel::hierarchical(64).expect("memory"))),
            measure(Line::new),
            measure(|| TokioUtil(DelayQueue::new(), &runtime)),
            measure(|| Nexus(nexus().build(Instant::now()).expect("valid"), Vec::new())),
        ]);
    }
    println!("| | insert + remove | push back | expire |\n|---|---|---|---|");
    for (number, name) in names.iter().enumerate() {
        let cells = (0..3).map(|operation| {
            let times = rounds.iter().map(|round| round[number][operation]);
            let ratios = rounds.iter().map(|round| round[number][operation] / round[0][operation]);
            format!("{:.0} ns, {:.2}", median(times), median(ratios))
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}
