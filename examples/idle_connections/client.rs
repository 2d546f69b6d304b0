//! The clients: a process of its own, so that it has files of its own, and one event loop.

use crate::alarm::Alarms;
use crate::cli::Args;
use crate::echo::{CHUNK, retry};
use crate::limits;
use crate::record::{Outcome, Progress};
use crate::script::Script;
use crate::slots::{Key, Slots};
use crate::talker::{Phase, Talker};
use crate::tally::Tally;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const WAKER: Token = Token(usize::MAX);

/// The pace of opening. A server gets some thousands of new clients in a second, and its backlog
/// is not overrun.
pub(crate) const OPENINGS_PER_SECOND: u64 = 4000;
const MOST_CONNECTING: u64 = 256;
const OPENING_PAUSE: Duration = Duration::from_millis(2);

const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Opens the connections, plays the scripts and waits for the last close. Reports on `out`, one
/// line at a time, and fails if nobody reads that any more.
pub(crate) fn run(args: &Args, server: SocketAddr, out: &mut impl Write) -> io::Result<()> {
    limits::raise_open_files()?;
    let mut clients = Clients::new(args, server)?;
    let outcome = clients.run(out)?;
    writeln!(out, "{outcome}")
}

struct Clients {
    args: Args,
    server: SocketAddr,
    poll: Poll,
    alarms: Alarms,
    talkers: Slots<Talker>,
    begun: Instant,
    /// How many connections have been begun, and how many of these are not complete.
    asked: u64,
    connecting: u64,
    tally: Tally,
    chunk: Box<[u8; CHUNK]>,
}

impl Clients {
    fn new(args: &Args, server: SocketAddr) -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarms = Alarms::new(poll.registry(), WAKER, args.tick(), args.verdict_after())?;
        Ok(Self {
            args: args.clone(),
            server,
            poll,
            alarms,
            talkers: Slots::new(),
            begun: Instant::now(),
            asked: 0,
            connecting: 0,
            tally: Tally::new(args.idle())?,
            chunk: Box::new([0; CHUNK]),
        })
    }

    fn run(&mut self, out: &mut impl Write) -> io::Result<Outcome> {
        let mut events = Events::with_capacity(1024);
        let mut next_report = self.begun;
        while self.is_opening() || self.talkers.len() > 0 {
            self.open_some()?;
            let patience = if self.is_opening() { OPENING_PAUSE } else { REPORT_EVERY };
            retry(|| self.poll.poll(&mut events, Some(patience)))?;
            for event in events.iter().filter(|event| event.token() != WAKER) {
                self.on_ready(event.token().into())?;
            }
            while let Some(key) = self.alarms.next_due() {
                self.on_due(key)?;
            }
            if Instant::now() >= next_report {
                writeln!(out, "{}", self.progress())?;
                next_report = Instant::now() + REPORT_EVERY;
            }
        }
        self.tally.outcome()
    }

    fn is_opening(&self) -> bool {
        self.asked < self.args.connections && self.tally.cut_short_by.is_none()
    }

    fn progress(&self) -> Progress {
        Progress {
            open: self.talkers.len() as u64 - self.connecting,
            silent: self.tally.silent,
            echoed: self.tally.echoed,
            closed: self.tally.closed(),
        }
    }

    fn open_some(&mut self) -> io::Result<()> {
        let by_now = 1 + self.begun.elapsed().as_millis() as u64 * OPENINGS_PER_SECOND / 1000;
        while self.is_opening() && self.asked < by_now && self.connecting < MOST_CONNECTING {
            match self.open() {
                Err(error) if limits::is_exhaustion(&error) => {
                    self.tally.cut_short_by = error.raw_os_error();
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        let Args { seed, .. } = self.args;
        let script = Script::new(seed, self.asked, self.args.idle(), self.args.talk());
        let mut talker =
            Talker::connect(self.server, self.asked, script, self.args.verdict_after())?;
        let token = self.talkers.next_key().into();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut talker.stream, token, interest)?;
        let key = self.talkers.insert(talker);
        self.asked += 1;
        self.connecting += 1;
        self.arm(key)
    }

    fn on_ready(&mut self, key: Key) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(key) else { return Ok(()) };
        if talker.phase == Phase::Connecting {
            match talker.try_complete(self.args.verdict_after()) {
                Ok(false) => return Ok(()),
                Ok(true) => self.connected(key)?,
                Err(_) => self.drop_unconnected(key),
            }
        }
        self.hear(key)?;
        self.speak(key, |phase| matches!(phase, Phase::Sending(_)))
    }

    /// Before it acts, a client hears what has happened: a close by the server that lies in the
    /// socket came before the message that is due now.
    fn on_due(&mut self, key: Key) -> io::Result<()> {
        self.hear(key)?;
        let Some(talker) = self.talkers.get_mut(key) else { return Ok(()) };
        let Some(late) = Instant::now().checked_duration_since(talker.due) else {
            return self.arm(key);
        };
        match talker.phase {
            Phase::Pausing(_) => self.speak(key, |_| true),
            // Whoever looks late was held up, and then the server may have been as well.
            Phase::Sending(_) | Phase::Silent if late > self.args.grace() / 10 => {
                talker.due += late + self.args.grace();
                self.arm(key)
            }
            Phase::Sending(_) | Phase::Silent => {
                self.remove(key);
                self.tally.missed += 1;
                Ok(())
            }
            Phase::Connecting => {
                self.drop_unconnected(key);
                Ok(())
            }
        }
    }

    fn connected(&mut self, key: Key) -> io::Result<()> {
        self.connecting -= 1;
        self.tally.opened += 1;
        self.count_if_silent(key);
        self.arm(key)
    }

    fn drop_unconnected(&mut self, key: Key) {
        self.talkers.remove(key);
        self.connecting -= 1;
        self.tally.unconnected += 1;
    }

    fn hear(&mut self, key: Key) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(key) else { return Ok(()) };
        if talker.phase == Phase::Connecting {
            return Ok(());
        }
        let heard = talker.hear(&mut self.chunk);
        self.tally.echoed += heard.answered;
        if heard.closed {
            self.close(key);
        } else if talker.try_reset()? {
            self.remove(key);
            self.tally.reset += 1;
        }
        Ok(())
    }

    fn speak(&mut self, key: Key, when: impl Fn(Phase) -> bool) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(key) else { return Ok(()) };
        if !when(talker.phase) {
            return Ok(());
        }
        if talker.speak(self.args.verdict_after()).is_err() {
            self.close(key);
            return Ok(());
        }
        self.count_if_silent(key);
        self.arm(key)
    }

    /// The server has closed it.
    fn close(&mut self, key: Key) {
        let seen = Instant::now();
        if let Some(talker) = self.remove(key) {
            self.tally.judge(&talker, seen);
        }
    }

    fn remove(&mut self, key: Key) -> Option<Talker> {
        let talker = self.talkers.remove(key)?;
        self.tally.silent -= u64::from(talker.phase == Phase::Silent);
        Some(talker)
    }

    fn count_if_silent(&mut self, key: Key) {
        let talker = self.talkers.get_mut(key);
        self.tally.silent += u64::from(talker.is_some_and(|t| t.phase == Phase::Silent));
    }

    fn arm(&mut self, key: Key) -> io::Result<()> {
        let Some(talker) = self.talkers.get_mut(key) else { return Ok(()) };
        self.alarms.set(&mut talker.alarm, key, talker.due)
    }
}
