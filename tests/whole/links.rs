//! The connections and streams of a program that idle managers watch.

use crate::common::Random;
use crate::ledger::Ledger;
use crate::naps::{Woken, waker};
use crate::play::World;
use crate::program::nanos;
use crate::rogue::{self, Value};
use futures_io::AsyncRead;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex as Leaf}; // never locked across a call of the timer
use std::task::{Context, Poll};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{
    Answer, IdleEvent, IdleKind, IdlePolicy, IdleStream, IdleStreams, IdleTimeouts, TimedOut, Watch,
};

/// The idle managers of a timer, which they keep alive.
#[derive(Clone)]
pub struct Managers {
    connections: IdleTimeouts<Connection>,
    streams: IdleStreams,
}

impl Managers {
    pub fn new(timer: &HashedWheelTimer) -> Self {
        let connections = IdleTimeouts::new(timer, Connection::report);
        Self { connections, streams: IdleStreams::new(timer) }
    }

    /// Stops watching some connections.
    pub fn take_idlest(&self, world: &World, timer: usize, n: usize) {
        let taken = self.connections.take_idlest(n);
        check_moved(world, timer);
        taken.iter().for_each(|taken| taken.connection.facts.lock().unwrap().ended = true);
    }
}

/// What is known of a connection or a stream.
#[derive(Clone, Copy, Debug)]
struct Facts {
    after: u64,
    /// It was touched at this time or later.
    touched: u64,
    /// The same at the last quiet moment, so the manager knows it.
    settled: u64,
    /// It was touched or reported last at this time or before.
    from: u64,
    /// Whether no report may follow.
    ended: bool,
    /// Whether the drop of its handle has returned.
    dropped: bool,
}

type Shared = Arc<Leaf<Facts>>;

/// When a silence begins: now, or at the quiet moment, because a pool may file its connection until then.
fn begin(world: &World) -> u64 {
    if world.size.rogue { u64::MAX } else { world.now() }
}

/// A call has returned that may have moved the check of a shard, because a connection came or left. If the new time was
/// past by then, the check is due in the next tick.
fn check_moved(world: &World, timer: usize) {
    world.ledgers[timer].check_moved.fetch_max(begin(world), SeqCst);
}

/// What a manager holds for a connection.
struct Connection {
    value: Value,
    timer: usize,
    facts: Shared,
    more_reports: u64,
}

impl Connection {
    fn report(&mut self, event: IdleEvent) -> Answer {
        let world = self.value.world().clone();
        let now = world.now();
        let stops = event.kind == IdleKind::TimerStopped || self.more_reports == 0;
        self.more_reports = self.more_reports.saturating_sub(1);
        let mut facts = self.facts.lock().unwrap();
        if let Some(fault) = self.fault(&world, &facts, event, now) {
            world.complain(format!("a connection: {fault}: {event:?} at {now}"));
        }
        facts.from = begin(&world);
        // A drop may have begun after the last look at the handle, but before this call.
        facts.ended = event.kind == IdleKind::TimerStopped || facts.dropped;
        drop(facts);
        rogue::user_code(&world);
        if stops {
            self.facts.lock().unwrap().ended = true;
            return Answer::StopWatching;
        }
        Answer::KeepWatching
    }

    fn fault(
        &self,
        world: &World,
        facts: &Facts,
        event: IdleEvent,
        now: u64,
    ) -> Option<&'static str> {
        if facts.ended {
            return Some("reported after its end");
        }
        if event.kind == IdleKind::TimerStopped {
            let ends = world.ledgers[self.timer].stopped.load(SeqCst);
            return (!ends).then_some("the timer goes on");
        }
        let early = nanos(event.silent_for) < facts.after
            || now < facts.settled.saturating_add(facts.after);
        early.then_some("early")
    }
}

/// A stream that moves a byte if there is one, and else never wakes a task.
struct Pipe(AtomicBool);

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.0.swap(false, SeqCst) { Poll::Ready(Ok(1)) } else { Poll::Pending }
    }
}

enum Handle {
    Connection(Watch),
    /// The stream, and whether it waits.
    Stream(IdleStream<Pipe>, bool),
}

/// A handle of the program.
pub struct Link {
    world: Arc<World>,
    pub timer: usize,
    policy: IdlePolicy,
    handle: Handle,
    facts: Shared,
    woken: Arc<Woken>,
}

impl Link {
    /// `None` if the timer has ended.
    pub fn new(
        world: &Arc<World>,
        random: &mut Random,
        timer: usize,
        delay: Duration,
    ) -> Option<Self> {
        let managers = world.managers(timer)?;
        let is_stream = random.below(4) == 0;
        // A silent stream is reported again and again, and a clock may stop at each tick with a report.
        let least = world.ledgers[timer].ring.tick * if is_stream { 64 } else { 1 };
        let after = delay.max(least);
        let policy = IdlePolicy::new().both(after);
        let touched = world.now();
        let facts = Arc::new(Leaf::new(Facts {
            after: nanos(after),
            touched,
            settled: touched,
            from: u64::MAX,
            ended: false,
            dropped: false,
        }));
        let handle = if is_stream {
            let stream =
                managers.streams.wrap_with(Pipe(AtomicBool::new(false)), &policy, |_| None);
            Handle::Stream(stream.ok()?, false)
        } else {
            let connection = Connection {
                value: Value::new(world, rogue::Kind::Value),
                timer,
                facts: facts.clone(),
                more_reports: random.below(4),
            };
            Handle::Connection(managers.connections.watch(connection, &policy).ok()?)
        };
        let link =
            Self { world: world.clone(), timer, policy, handle, facts, woken: Woken::new(world) };
        link.touched(touched);
        check_moved(world, timer);
        Some(link)
    }

    /// Uses it. Returns it, unless it was dropped.
    pub fn used(mut self, random: &mut Random) -> Option<Self> {
        let before = self.world.now();
        self.facts.lock().unwrap().from = u64::MAX; // until the touch has returned: the clock may panic
        match random.below(6) {
            0 => {
                drop(self.handle);
                check_moved(&self.world, self.timer);
                self.facts.lock().unwrap().dropped = true;
                return None;
            }
            1 => drop(self.watch().pause()),
            _ => self.watch().touch(),
        }
        self.touched(before);
        self.watch().set_policy(&self.policy); // no touch
        check_moved(&self.world, self.timer);
        self.poll(random.below(2) == 0);
        Some(self)
    }

    fn watch(&self) -> &Watch {
        match &self.handle {
            Handle::Connection(watch) => watch,
            Handle::Stream(stream, _) => stream.watch(),
        }
    }

    /// A touch has returned that had not begun at the time `before`.
    fn touched(&self, before: u64) {
        let mut facts = self.facts.lock().unwrap();
        facts.touched = before;
        facts.from = begin(&self.world);
    }

    /// Reads a stream.
    fn poll(&mut self, has_byte: bool) {
        let Handle::Stream(stream, waits) = &mut self.handle else { return };
        stream.get_ref().0.store(has_byte, SeqCst);
        self.woken.set(false);
        let waker = waker(self.woken.clone());
        let before = self.world.now();
        let read = Pin::new(stream).poll_read(&mut Context::from_waker(&waker), &mut [0]);
        *waits = read.is_pending();
        match read {
            Poll::Ready(Ok(_)) => self.touched(before),
            Poll::Ready(Err(error)) => {
                let error = error.get_ref().and_then(|error| error.downcast_ref::<TimedOut>());
                let silent_for = error.expect("the pipe has no error").silent_for;
                let Facts { after, touched, .. } = *self.facts.lock().unwrap();
                let now = self.world.now();
                if nanos(silent_for) < after || now < touched.saturating_add(after) {
                    let begin = format!("a stream: early: {silent_for:?} at {now}");
                    self.world.complain(format!("{begin}, touched at {touched}, {after}"));
                }
            }
            Poll::Pending => {}
        }
    }

    pub fn describe(&self) -> String {
        let kind =
            if matches!(self.handle, Handle::Connection(_)) { "connection" } else { "stream" };
        format!("the report of a {kind}, {:?},", *self.facts.lock().unwrap())
    }

    /// Whether its manager is to report it.
    pub fn is_watched(&self) -> bool {
        matches!(self.handle, Handle::Connection(_)) && !self.facts.lock().unwrap().ended
    }

    /// The start of the tick in which it must be reported. Asked at a quiet moment, at which the time is `now`.
    pub fn due_by(&self, ledger: &Ledger, now: u64) -> Option<u64> {
        let waits = match &self.handle {
            Handle::Connection(_) => self.is_watched(),
            Handle::Stream(_, waits) => *waits && !self.woken.get(),
        };
        let mut facts = self.facts.lock().unwrap();
        if !self.world.size.rogue {
            facts.settled = facts.touched;
        }
        facts.from = facts.from.min(now);
        let moved = ledger.check_moved.load(SeqCst).min(now);
        waits.then(|| ledger.due_by(facts.from.saturating_add(facts.after), facts.from.max(moved)))
    }
}
