//! One connection of a client: says what its script wants, checks the echo, waits for the close.

use super::judge::{LastWrites, Span};
use super::script::{Ending, Script};
use mio::net::TcpStream;
use socket2::SockRef;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// Read at once.
pub(super) const CHUNK: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    /// Before a message of this length.
    Pausing(u64),
    /// This many bytes of a message are not yet taken by the socket.
    Sending(u64),
    /// For good.
    Silent,
}

/// What a socket had to say.
#[derive(Default)]
pub(super) struct Heard {
    /// Messages of which the last byte has come back.
    pub(super) answered: u64,
    pub(super) closed: bool,
}

pub(super) struct Talker {
    pub(super) stream: TcpStream,
    pub(super) phase: Phase,
    pub(super) writes: LastWrites,
    /// When to say the next message; or, when it is for the server to act, when to look whether it
    /// has.
    pub(super) due: Instant,
    script: Script,
    number: u64,
    sent: u64,
    echoed: u64,
    unanswered: u64,
    mismatch: bool,
}

impl Talker {
    /// Begins to connect. `verdict_after` is how long after its last write a connection that is
    /// still open counts as forgotten.
    pub(super) fn connect(
        server: SocketAddr,
        number: u64,
        script: Script,
        verdict_after: Duration,
    ) -> io::Result<Self> {
        let before = Instant::now();
        let stream = TcpStream::connect(server)?;
        Ok(Self {
            stream,
            phase: Phase::Connecting,
            writes: LastWrites::connect(Span { before, after: Instant::now() }),
            due: before + verdict_after,
            script,
            number,
            sent: 0,
            echoed: 0,
            unanswered: 0,
            mismatch: false,
        })
    }

    /// Whether the connection is complete, as of now.
    pub(super) fn try_complete(&mut self, verdict_after: Duration) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            result => result?,
        };
        self.stream.set_nodelay(true)?;
        self.writes.extend(Instant::now());
        self.plan(verdict_after);
        Ok(true)
    }

    /// Reads and checks all that has come.
    pub(super) fn hear(&mut self, chunk: &mut [u8; CHUNK]) -> Heard {
        let closed = loop {
            match self.stream.read(chunk) {
                Ok(0) => break true,
                Ok(n) => self.check(&chunk[..n]),
                // Any other error is an end as well: the server resets what it closes too early.
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
        };
        let answered = if self.is_answered() { std::mem::take(&mut self.unanswered) } else { 0 };
        Heard { answered, closed }
    }

    /// Says the message that is due, or what is left of it.
    ///
    /// # Errors
    ///
    /// If the connection is closed.
    pub(super) fn speak(&mut self, verdict_after: Duration) -> io::Result<()> {
        let bytes = match self.phase {
            Phase::Pausing(bytes) => {
                self.unanswered += 1;
                bytes
            }
            Phase::Sending(left) => left,
            Phase::Connecting | Phase::Silent => return Ok(()),
        };
        let message: Vec<u8> = (self.sent..self.sent + bytes).map(|at| self.byte_at(at)).collect();
        let before = Instant::now();
        let taken = self.write_some(&message)? as u64;
        if taken > 0 {
            self.writes.add(Span { before, after: Instant::now() });
        }
        self.sent += taken;
        self.phase = Phase::Sending(bytes - taken);
        self.plan(verdict_after);
        Ok(())
    }

    /// Writes as much as the socket takes now, which may be nothing.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.stream.write(&bytes[taken..]) {
                Ok(n) => taken += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Goes without a FIN, if that is how it ends and it has all it waits for.
    ///
    /// # Errors
    ///
    /// If the system does not allow that.
    pub(super) fn try_reset(&self) -> io::Result<bool> {
        let ends =
            self.phase == Phase::Silent && self.script.ending == Ending::Reset && self.sent > 0;
        if !ends || !self.is_answered() {
            return Ok(false);
        }
        // The close that follows is then a reset.
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        Ok(true)
    }

    /// Whether everything that was sent came back, and nothing else.
    pub(super) fn is_intact(&self) -> bool {
        self.is_answered() && !self.mismatch
    }

    pub(super) fn is_answered(&self) -> bool {
        self.echoed == self.sent && !matches!(self.phase, Phase::Sending(_))
    }

    /// What comes after a write.
    fn plan(&mut self, verdict_after: Duration) {
        let end = self.writes.end();
        self.due = end + verdict_after;
        if matches!(self.phase, Phase::Sending(left) if left > 0) {
            return;
        }
        self.phase = Phase::Silent;
        if let Some(step) = self.script.next() {
            self.phase = Phase::Pausing(step.bytes);
            self.due = end + step.pause;
        } else if self.script.ending == Ending::HalfClose {
            // It fails only if the server has closed the connection, which is heard of soon.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    fn check(&mut self, heard: &[u8]) {
        let from = self.echoed;
        self.echoed += heard.len() as u64;
        let expected = (from..).map(|at| self.byte_at(at));
        let equal = self.echoed <= self.sent && heard.iter().copied().zip(expected).all(same);
        self.mismatch |= !equal;
    }

    /// Byte `at` of all that this client ever sends. Neither the neighbour's bytes nor its own from
    /// another place pass for it.
    fn byte_at(&self, at: u64) -> u8 {
        ((self.number << 20) ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
    }
}

fn same((heard, expected): (u8, u8)) -> bool {
    heard == expected
}
