//! Claim: of a million watched connections, each takes 84 bytes. The timer's thread takes no processor time for
//! them while they are silent, and 0.2 % of a core while each reads once a second. One timeout of the timer for
//! each connection, which looks at the last read and arms itself again, takes 138 bytes.
//!
//! `cargo bench --bench idle_cost` takes five minutes. With `-- --quick` it takes a few seconds, with fewer
//! connections.

use kit::cpu;
use kit::live_bytes::{self, COUNTING, Counting};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{CancelOnDrop, HashedWheelTimer};

#[global_allocator]
static ALLOCATOR: &Counting = &COUNTING;

/// Rounds in a second. Each touches a tenth of the connections.
const TENTHS: u32 = 10;

struct Size {
    connections: u64,
    idle: Duration,
    /// Nobody becomes idle meanwhile.
    silent: Duration,
    /// Each connection is checked several times meanwhile.
    touched: Duration,
}

const FULL: Size = size(1_000_000, 60, 20, 130);
const QUICK: Size = size(10_000, 4, 1, 5);

const fn size(connections: u64, idle: u64, silent: u64, touched: u64) -> Size {
    let [idle, silent, touched] =
        [Duration::from_secs(idle), Duration::from_secs(silent), Duration::from_secs(touched)];
    Size { connections, idle, silent, touched }
}

/// A connection as the server has it in hand.
trait Touch {
    fn touch_at(&self, now: Instant);
}

fn main() {
    let size = if std::env::args().any(|arg| arg == "--quick") { QUICK } else { FULL };
    println!("| | bytes each | CPU, silent | wake-ups | CPU, touched | wake-ups |");
    println!("|---|---|---|---|---|---|");
    print_row("the idle manager", &size, |timer| {
        let manager = IdleTimeouts::new(timer, |_: &mut u64, _| Answer::StopWatching);
        let policy = IdlePolicy::new().reader(size.idle);
        move |id| manager.watch(id, &policy).expect("the timer runs")
    });
    print_row("a timeout each", &size, |timer| {
        let timer = timer.clone();
        move |id| Single::watch(&timer, id, size.idle)
    });
}

/// Opens the connections, lets time pass, and prints what it took.
fn print_row<T: Touch, W: Fn(u64) -> T>(
    name: &str,
    size: &Size,
    watch: impl FnOnce(&HashedWheelTimer) -> W,
) {
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    let watch = watch(&timer);
    let before = live_bytes::bytes();
    let all: Vec<T> = (0..size.connections).map(watch).collect();
    std::thread::sleep(Duration::from_secs(1)); // the worker takes in what was scheduled
    let each = (live_bytes::bytes() - before) as f64 / all.len() as f64;
    let silent = cost(&timer, || std::thread::sleep(size.silent));
    let touched = cost(&timer, || touch(&all, size.touched));
    println!("| {name} | {each:.1} | {silent} | {touched} |");
}

/// Touches each connection once a second.
fn touch(all: &[impl Touch], duration: Duration) {
    let begun = Instant::now();
    for round in 0..duration.as_secs() as u32 * TENTHS {
        let (now, first) = (Instant::now(), (round % TENTHS) as usize);
        all.iter().skip(first).step_by(TENTHS as usize).for_each(|one| one.touch_at(now));
        let next = begun + Duration::from_secs(1) / TENTHS * (round + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The part of a core and the wake-ups that the timer's thread takes during `work`.
fn cost(timer: &HashedWheelTimer, work: impl FnOnce()) -> String {
    let (begun, cpu, wakeups) = (Instant::now(), cpu_of(timer), timer.metrics().wakeups);
    work();
    let wakeups = timer.metrics().wakeups - wakeups; // without that of the next look
    let share = 100.0 * (cpu_of(timer) - cpu) / begun.elapsed().as_secs_f64();
    format!("{share:.3} % | {wakeups}")
}

/// The processor time of the timer's thread in seconds. A task there looks at it.
fn cpu_of(timer: &HashedWheelTimer) -> f64 {
    let (sender, seconds) = mpsc::channel();
    let look = move || sender.send(cpu::of_thread()).expect("it is waited for");
    timer.new_timeout(look, Duration::ZERO).expect("the timer runs");
    seconds.recv().expect("the task runs")
}

impl Touch for Watch {
    fn touch_at(&self, now: Instant) {
        self.record_read_at(now);
    }
}

/// One timeout of the timer for a connection.
struct Single {
    pulse: Arc<Pulse>,
    _timeout: CancelOnDrop,
}

/// What the manager keeps for each connection, with the timeout in place of a seat.
struct Pulse {
    started: Instant,
    idle: Duration,
    read: AtomicU64,
    _wrote: AtomicU64,
    _connection: u64,
}

struct Look(Arc<Pulse>);

impl TimerTask for Look {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let last = Duration::from_nanos(self.0.read.load(Ordering::Relaxed));
        let due = self.0.started + last + self.0.idle;
        if due > run.now() { Next::at(self, due) } else { Next::done() }
    }
}

impl Single {
    fn watch(timer: &HashedWheelTimer, connection: u64, idle: Duration) -> Self {
        let pulse = Arc::new(Pulse {
            started: Instant::now(),
            idle,
            read: AtomicU64::new(0),
            _wrote: AtomicU64::new(0),
            _connection: connection,
        });
        let timeout = timer.new_timeout(Look(pulse.clone()), idle).expect("the timer runs");
        Self { pulse, _timeout: timeout.cancel_on_drop() }
    }
}

impl Touch for Single {
    fn touch_at(&self, now: Instant) {
        let since = now.saturating_duration_since(self.pulse.started);
        self.pulse.read.store(since.as_nanos() as u64, Ordering::Relaxed);
    }
}
