//! Streams of a program that a timer limits or slows down. Each item comes out once.

use crate::play::World;
use crate::rogue::{self, Value};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::future::{
    ChunksTimeout, Debounce, DelayKey, DelayQueue, Delayed, StreamTimeout, Throttle, TimedStreamExt,
};
use wheelwork::time::Clock;

type Queue = DelayQueue<Value>;

enum Kind {
    Throttle(Pin<Box<Throttle<Queue>>>),
    Chunks(Pin<Box<ChunksTimeout<Queue>>>),
    Timeout(Pin<Box<StreamTimeout<Queue>>>),
    /// Drops items.
    Debounce(Pin<Box<Debounce<Queue>>>),
}

/// A stream of values that come out of a queue.
pub struct TimedStream {
    world: Arc<World>,
    timer: usize,
    kind: Kind,
    limit: Duration,
    /// The keys of the values that are to come.
    left: Vec<DelayKey>,
    /// When the last one will be due.
    last: Instant,
}

impl TimedStream {
    /// One of four kinds.
    pub fn new(
        world: &Arc<World>,
        number: usize,
        timer: &HashedWheelTimer,
        kind: u64,
        limit: Duration,
    ) -> Self {
        let mut queue = DelayQueue::new(timer);
        let insert =
            |n| queue.insert(Value::new(world, rogue::Kind::Value), timer.tick_duration() * n);
        let left: Vec<_> = [0, 1, 1, 5].map(insert).into();
        let last = queue.iter().map(|(_, deadline, _)| deadline).max().expect("it has values");
        let kind = match kind {
            0 => Kind::Throttle(Box::pin(queue.throttle_on(timer, limit))),
            1 => Kind::Chunks(Box::pin(queue.chunks_timeout_on(timer, 2, limit))),
            2 => Kind::Timeout(Box::pin(queue.timeout_on(timer, limit))),
            _ => Kind::Debounce(Box::pin(queue.debounce_on(timer, limit))),
        };
        Self { world: world.clone(), timer: number, kind, limit, left, last }
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = match &mut self.kind {
            Kind::Throttle(stream) => stream.as_mut().poll_next(cx).map(|item| item.map(one)),
            Kind::Chunks(stream) => stream.as_mut().poll_next(cx),
            Kind::Timeout(stream) => stream
                .as_mut()
                .poll_next(cx)
                .map(|item| item.map(|item| item.map_or(Vec::new(), one))),
            Kind::Debounce(stream) => stream.as_mut().poll_next(cx).map(|item| item.map(one)),
        };
        polled.map(|items| match items {
            Some(items) => items.into_iter().for_each(|item| self.came(&item)),
            None => self.ended(),
        })
    }

    /// An item has come.
    fn came(&mut self, item: &Delayed<Value>) {
        let now = self.world.clock.now();
        let at = self.left.iter().position(|&key| key == item.key);
        if at.is_none() || now < item.deadline {
            self.world.complain(format!("a stream: twice or early: {:?} at {now:?}", item.key));
        }
        at.into_iter().for_each(|at| _ = self.left.swap_remove(at));
    }

    /// It has ended: by the end of its items, if the timer has not ended.
    fn ended(&self) {
        let stopped = self.world.ledgers[self.timer].stopped.load(SeqCst);
        let runs = !stopped && self.world.timer(self.timer).is_some();
        if runs && !self.left.is_empty() && !matches!(self.kind, Kind::Debounce(_)) {
            self.world.complain(format!("a stream: never came: {:?}", self.left));
        }
    }

    /// When it is ready at the latest, if it was polled now.
    pub fn deadline(&self) -> Instant {
        self.last.max(self.world.clock.now() + self.limit)
    }
}

fn one<T>(item: T) -> Vec<T> {
    vec![item]
}
