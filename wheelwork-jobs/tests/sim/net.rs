//! The network between the processes of the clients and the server.

use super::fault::Fault;
use super::world::{self, Process};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How it is between one process and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Good,
    /// Each message takes up to this many milliseconds.
    Slow(u64),
    /// Nothing arrives, and nobody is told. What was sent arrives later.
    Hangs,
    /// What is asked arrives, but half of the answers end their connection instead.
    Loses,
    /// Connections end, and new ones are refused.
    Cut,
}

/// How it is with one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// Both sides learn of the end.
    Reset,
    /// Half-open: nothing arrives any more, and nobody is told.
    Silent,
}

/// Clones are the same network.
#[derive(Clone, Default)]
pub(super) struct Net(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// After how many milliseconds connections are forgotten.
    forgets: BTreeMap<Process, Arc<AtomicU64>>,
    lines: BTreeMap<Process, watch::Sender<Line>>,
    wires: Vec<Wire>,
}

/// One connection. Clones are the same one.
#[derive(Clone)]
pub(super) struct Wire {
    client: Process,
    listens: Arc<AtomicBool>,
    line: watch::Receiver<Line>,
    end: watch::Sender<End>,
    last_packet: Arc<Mutex<Instant>>,
    forgets_after: Arc<AtomicU64>,
}

impl Net {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connect(&self, client: Process) -> Wire {
        let mut state = self.state();
        let line = state.lines.entry(client).or_insert_with(|| watch::Sender::new(Line::Good));
        let (line, end) = (line.subscribe(), watch::Sender::new(End::Open));
        let forgets_after = state.forgets.entry(client).or_default().clone();
        let (listens, last_packet) = (Arc::default(), Arc::new(Mutex::new(world::now())));
        let wire = Wire { client, listens, line, end, last_packet, forgets_after };
        state.wires.push(wire.clone());
        wire
    }

    pub(super) fn set(&self, client: Process, line: Line) {
        let mut state = self.state();
        let sender = state.lines.entry(client).or_insert_with(|| watch::Sender::new(line));
        sender.send_replace(line);
        drop(state);
        if line == Line::Cut {
            self.end(End::Reset, |wire| wire.client == client);
        }
    }

    /// From now on, what was quiet for this many milliseconds is half-open. Zero ends that.
    pub(super) fn forget_after(&self, client: Process, quiet: u64) {
        self.state().forgets.entry(client).or_default().store(quiet, Relaxed);
    }

    /// Ends all connections of a process.
    pub(super) fn reset(&self, client: Process) {
        self.end(End::Reset, |wire| wire.client == client);
    }

    pub(super) fn reset_all(&self) {
        self.end(End::Reset, |_| true);
    }

    /// Ends the connection on which a process listens.
    pub(super) fn reset_listener(&self, client: Process) {
        self.end(End::Reset, |wire| wire.client == client && wire.listens.load(Relaxed));
    }

    pub(super) fn silence(&self, client: Process) {
        self.end(End::Silent, |wire| wire.client == client);
    }

    pub(super) fn silence_listener(&self, client: Process) {
        self.end(End::Silent, |wire| wire.client == client && wire.listens.load(Relaxed));
    }

    fn end(&self, end: End, of: impl Fn(&Wire) -> bool) {
        let mut state = self.state();
        state.wires.retain(|wire| {
            let ends = of(wire);
            if ends {
                wire.end.send_replace(end);
            }
            !ends || end == End::Silent
        });
    }
}

impl Wire {
    pub(super) fn client(&self) -> Process {
        self.client
    }

    pub(super) fn is_silent(&self) -> bool {
        *self.end.borrow() == End::Silent
    }

    /// The way of one message to the server or back. An error says that the connection has ended.
    pub(super) async fn pass(&self, back: bool) -> Result<(), Fault> {
        self.pass_firewall();
        let (mut line, mut end) = (self.line.clone(), self.end.subscribe());
        loop {
            let now = *line.borrow_and_update();
            let ended = *end.borrow_and_update();
            let longest = match (ended, now) {
                (End::Reset, _) | (_, Line::Cut) => return Err(Fault::Closed),
                (End::Silent, _) => None,
                (End::Open, Line::Hangs) => None,
                (End::Open, Line::Loses) if back && fastrand::bool() => {
                    self.end.send_replace(End::Reset);
                    return Err(Fault::Closed);
                }
                (End::Open, Line::Good | Line::Loses) => Some(1_000),
                (End::Open, Line::Slow(ms)) => Some(1_000 * ms),
            };
            let passing = async {
                match longest {
                    Some(micros) => {
                        world::sleep(Duration::from_micros(fastrand::u64(100..=micros))).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = end.changed() => {}
                _ = line.changed() => {}
                () = passing => return Ok(()),
            }
        }
    }

    fn pass_firewall(&self) {
        let quiet = Duration::from_millis(self.forgets_after.load(Relaxed));
        let mut last = self.last_packet.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = world::now() - std::mem::replace(&mut *last, world::now());
        if !quiet.is_zero() && passed >= quiet && *self.end.borrow() == End::Open {
            self.end.send_replace(End::Silent);
        }
    }

    /// Waits until both sides know of the end.
    pub(super) async fn ended(&self) {
        let mut end = self.end.subscribe();
        let _ = end.wait_for(|end| *end == End::Reset).await;
    }

    /// It is the connection on which its client listens.
    pub(super) fn listens(&self) {
        self.listens.store(true, Relaxed);
    }
}
