//! Watched connections. Most of them are read from all the time. Some fall silent, are reported, and make
//! room for new ones.

use super::requests::Random;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdleKind, IdlePolicy, IdleTimeouts, Watch};

/// A connection is reported after this silence.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(10);

/// Ages are counted in steps of a second.
pub(crate) const AGES: usize = 10;

const TURN: Duration = Duration::from_millis(20);
const TURNS_PER_SECOND: u64 = 50;

/// One connection in this number has fallen silent.
const SILENT: u64 = 25;

pub(crate) struct Connections {
    idle: IdleTimeouts<usize>,
    watches: Mutex<Vec<Connection>>,
}

struct Connection {
    watch: Watch,
    silent: bool,
}

pub(super) fn start(
    timer: &HashedWheelTimer,
    count: u32,
    ends: &Arc<AtomicBool>,
) -> (Arc<Connections>, JoinHandle<()>) {
    let (sender, closed) = channel();
    let idle = IdleTimeouts::new(timer, move |&mut number: &mut usize, event| {
        if event.kind != IdleKind::TimerStopped {
            let _ = sender.send(number); // the reader closes it
        }
        Answer::StopWatching
    });
    let connections = Arc::new(Connections { idle, watches: Mutex::default() });
    let (reading, ends) = (connections.clone(), ends.clone());
    let reader = std::thread::spawn(move || reading.read(count, &closed, &ends));
    (connections, reader)
}

impl Connections {
    pub(crate) fn watched(&self) -> usize {
        self.idle.watched()
    }

    pub(crate) fn reported(&self) -> u64 {
        self.idle.reported(IdleKind::All)
    }

    /// The number of connections by the seconds for which they have been silent.
    pub(crate) fn ages(&self) -> [u64; AGES] {
        let mut ages = [0; AGES];
        for connection in &*self.watches.lock().unwrap_or_else(PoisonError::into_inner) {
            let seconds = connection.watch.silent_for().as_secs() as usize;
            ages[seconds.min(AGES - 1)] += 1;
        }
        ages
    }

    fn accept(&self, number: usize, random: &mut Random) -> Option<Connection> {
        let watch = self.idle.watch(number, &IdlePolicy::new().all(IDLE_AFTER)).ok()?;
        Some(Connection { watch, silent: random.below(SILENT) == 0 })
    }

    /// Accepts, reads and closes, until the end.
    fn read(&self, count: u32, closed: &Receiver<usize>, ends: &AtomicBool) {
        let mut random = Random(7);
        let each = u64::from(count).div_ceil(TURNS_PER_SECOND) as usize;
        while !ends.load(Relaxed) {
            self.read_some(count as usize, each, closed, &mut random);
            std::thread::sleep(TURN);
        }
    }

    /// In a second, there are as many reads as connections. Connections are accepted over five seconds.
    fn read_some(&self, count: usize, each: usize, closed: &Receiver<usize>, random: &mut Random) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let all = watches.len();
        let new = (each / 5 + 1).min(count - all);
        watches.extend((all..all + new).map_while(|number| self.accept(number, random)));
        let now = self.idle.now();
        for _ in 0..each {
            let number = random.below(watches.len().max(1) as u64) as usize;
            if let Some(connection) = watches.get(number).filter(|connection| !connection.silent) {
                connection.watch.record_read_at(now);
            }
        }
        for number in closed.try_iter() {
            if let Some(connection) = self.accept(number, random) {
                watches[number] = connection;
            }
        }
    }
}
