//! The clients: one event loop, which opens connections, talks, and judges the server. Needs nothing of
//! the rest of the harness, so another example can use it.
//!
//! - `plan`: how many clients there are, and how they behave
//! - `script`: who says what and when, from the seed
//! - `talker`: one connection
//! - `judge`, `tally`: was the close right?
//! - `outcome`: what the clients have seen
//! - `limits`: what the system allows

pub(crate) mod limits;
pub(crate) mod outcome;

mod judge;
mod plan;
mod script;
mod talker;
mod tally;

pub(crate) use outcome::Outcome;
pub(crate) use plan::Plan;

use mio::{Events, Interest, Poll, Token};
use script::Script;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use talker::{CHUNK, Phase, Talker};
use tally::Tally;

/// The pace of opening. A server gets some thousands of new clients in a second, and its backlog
/// is not overrun.
pub(crate) const OPENINGS_PER_SECOND: u64 = 4000;
const MOST_CONNECTING: u64 = 256;
const OPENING_PAUSE: Duration = Duration::from_millis(2);

const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Opens the connections, plays the scripts and waits for the last close. Calls `report` several times a
/// second, and at the end. An error of `report` ends the run.
pub(crate) fn run(
    plan: Plan,
    server: SocketAddr,
    report: impl FnMut(Outcome) -> io::Result<()>,
) -> io::Result<()> {
    limits::raise_open_files()?;
    let mut clients = Clients {
        plan,
        server,
        poll: Poll::new()?,
        agenda: BinaryHeap::new(),
        talkers: HashMap::new(),
        begun: Instant::now(),
        asked: 0,
        connecting: 0,
        tally: Tally::new(plan.idle)?,
        chunk: Box::new([0; CHUNK]),
    };
    clients.run(report)
}

struct Clients {
    plan: Plan,
    server: SocketAddr,
    poll: Poll,
    /// When to look at which talker. An entry is out of date if the talker is due at another time.
    agenda: BinaryHeap<Reverse<(Instant, Token)>>,
    talkers: HashMap<Token, Talker>,
    begun: Instant,
    /// How many connections have been begun, and how many of these are not complete.
    asked: u64,
    connecting: u64,
    tally: Tally,
    chunk: Box<[u8; CHUNK]>,
}

impl Clients {
    fn run(&mut self, mut report: impl FnMut(Outcome) -> io::Result<()>) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut next_report = self.begun;
        while self.is_opening() || !self.talkers.is_empty() {
            self.open_some()?;
            match self.poll.poll(&mut events, Some(self.patience(next_report))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.on_ready(event.token())?;
            }
            while let Some(token) = self.next_due() {
                self.on_due(token)?;
            }
            if Instant::now() >= next_report {
                report(self.outcome()?)?;
                next_report = Instant::now() + REPORT_EVERY;
            }
        }
        report(self.outcome()?)
    }

    fn is_opening(&self) -> bool {
        let counted = if self.plan.replaces { self.talkers.len() as u64 } else { self.asked };
        counted < self.plan.connections && self.tally.seen.cut_short_by == 0
    }

    /// How long the poll may wait.
    fn patience(&self, next_report: Instant) -> Duration {
        let due = self.agenda.peek().map_or(next_report, |Reverse((at, _))| next_report.min(*at));
        let patience = due.saturating_duration_since(Instant::now());
        if self.is_opening() { patience.min(OPENING_PAUSE) } else { patience }
    }

    fn next_due(&mut self) -> Option<Token> {
        let now = Instant::now();
        while self.agenda.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Reverse((at, token)) = self.agenda.pop()?;
            if self.talkers.get(&token).is_some_and(|talker| talker.due == at) {
                return Some(token);
            }
        }
        None
    }

    fn outcome(&self) -> io::Result<Outcome> {
        self.tally.outcome(self.talkers.len() as u64 - self.connecting)
    }

    fn open_some(&mut self) -> io::Result<()> {
        let by_now = 1 + self.begun.elapsed().as_millis() as u64 * OPENINGS_PER_SECOND / 1000;
        while self.is_opening() && self.asked < by_now && self.connecting < MOST_CONNECTING {
            match self.open() {
                Err(error) if limits::is_exhaustion(&error) => {
                    self.tally.seen.cut_short_by = error.raw_os_error().unwrap_or_default() as u64;
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        let script = Script::new(self.plan.seed, self.asked, self.plan.idle, self.plan.talk);
        let verdict_after = self.plan.verdict_after();
        let mut talker = Talker::connect(self.server, self.asked, script, verdict_after)?;
        let token = Token(self.asked as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut talker.stream, token, interest)?;
        self.talkers.insert(token, talker);
        self.asked += 1;
        self.connecting += 1;
        self.put_on_agenda(token);
        Ok(())
    }

    fn on_ready(&mut self, token: Token) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(&token) else { return Ok(()) };
        if talker.phase == Phase::Connecting {
            match talker.try_complete(self.plan.verdict_after()) {
                Ok(false) => return Ok(()),
                Ok(true) => self.connected(token),
                Err(_) => self.drop_unconnected(token),
            }
        }
        self.hear(token)?;
        self.speak(token, |phase| matches!(phase, Phase::Sending(_)));
        Ok(())
    }

    /// Before it acts, a client hears what has happened: a close by the server that lies in the
    /// socket came before the message that is due now.
    fn on_due(&mut self, token: Token) -> io::Result<()> {
        self.hear(token)?;
        let Some(talker) = self.talkers.get_mut(&token) else { return Ok(()) };
        let late = talker.due.elapsed();
        match talker.phase {
            Phase::Pausing(_) => self.speak(token, |_| true),
            // Whoever looks late was held up, and then the server may have been as well.
            Phase::Sending(_) | Phase::Silent if late > self.plan.grace / 10 => {
                talker.due += late + self.plan.grace;
                self.put_on_agenda(token);
            }
            Phase::Sending(_) | Phase::Silent => {
                self.remove(token);
                self.tally.seen.missed += 1;
            }
            Phase::Connecting => self.drop_unconnected(token),
        }
        Ok(())
    }

    fn connected(&mut self, token: Token) {
        self.connecting -= 1;
        self.tally.seen.opened += 1;
        self.count_if_silent(token);
        self.put_on_agenda(token);
    }

    fn drop_unconnected(&mut self, token: Token) {
        self.talkers.remove(&token);
        self.connecting -= 1;
        self.tally.seen.unconnected += 1;
    }

    fn hear(&mut self, token: Token) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(&token) else { return Ok(()) };
        if talker.phase == Phase::Connecting {
            return Ok(());
        }
        let heard = talker.hear(&mut self.chunk);
        self.tally.seen.echoed += heard.answered;
        if heard.closed {
            self.close(token);
        } else if talker.try_reset()? {
            self.remove(token);
            self.tally.seen.reset += 1;
        }
        Ok(())
    }

    fn speak(&mut self, token: Token, when: impl Fn(Phase) -> bool) {
        let Some(talker) = self.talkers.get_mut(&token) else { return };
        if !when(talker.phase) {
            return;
        }
        if talker.speak(self.plan.verdict_after()).is_err() {
            return self.close(token);
        }
        self.count_if_silent(token);
        self.put_on_agenda(token);
    }

    /// The server has closed it.
    fn close(&mut self, token: Token) {
        let seen = Instant::now();
        if let Some(talker) = self.remove(token) {
            self.tally.judge(&talker, seen);
        }
    }

    fn remove(&mut self, token: Token) -> Option<Talker> {
        let talker = self.talkers.remove(&token)?;
        self.tally.seen.silent -= u64::from(talker.phase == Phase::Silent);
        Some(talker)
    }

    fn count_if_silent(&mut self, token: Token) {
        let talker = self.talkers.get(&token);
        self.tally.seen.silent += u64::from(talker.is_some_and(|t| t.phase == Phase::Silent));
    }

    fn put_on_agenda(&mut self, token: Token) {
        if let Some(talker) = self.talkers.get(&token) {
            self.agenda.push(Reverse((talker.due, token)));
        }
    }
}
