//! One connection of the event loop's: gives back what it gets.

use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use wheelwork::idle::Watch;

/// Read at once, and so the most that waits in memory for a peer that does not take its echo.
pub(crate) const CHUNK: usize = 16 * 1024;

pub(crate) struct Echo {
    stream: TcpStream,
    /// Read, and not yet taken by the socket; empty on a connection that keeps up.
    unsent: Vec<u8>,
    /// The peer has said that it sends no more. It may still be reading.
    peer_is_done: bool,
    pub(crate) watch: Watch,
}

/// What came of a look at the socket.
#[derive(PartialEq, Eq)]
pub(crate) enum Look {
    Open,
    /// The connection was reset.
    Gone,
}

impl Echo {
    pub(crate) fn new(stream: TcpStream, watch: Watch) -> Self {
        Self { stream, unsent: Vec::new(), peer_is_done: false, watch }
    }

    /// Reads and gives back until the socket would block, as edge-triggered events demand.
    pub(crate) fn pump(&mut self, chunk: &mut [u8; CHUNK]) -> Look {
        while !self.peer_is_done {
            match self.turn(chunk) {
                Ok(0) => self.peer_is_done = true,
                // After the read, never before: a clock read that is older than the bytes would
                // close the connection early by the difference.
                Ok(_) => self.watch.read(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Look::Open,
                Err(_) => return Look::Gone,
            }
        }
        // What is left to say to it.
        match write_some(&mut self.stream, &self.unsent) {
            Ok(sent) => {
                self.unsent.drain(..sent);
                Look::Open
            }
            Err(_) => Look::Gone,
        }
    }

    /// One read and its echo. While the peer does not take its echo, nothing more is read from it:
    /// that is the backpressure, and in the end it makes such a peer idle.
    fn turn(&mut self, chunk: &mut [u8; CHUNK]) -> io::Result<usize> {
        let sent = write_some(&mut self.stream, &self.unsent)?;
        self.unsent.drain(..sent);
        if !self.unsent.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let read = retry(|| self.stream.read(chunk))?;
        let sent = write_some(&mut self.stream, &chunk[..read])?;
        self.unsent.extend_from_slice(&chunk[sent..read]);
        Ok(read)
    }
}

/// Writes as much as the socket takes now, which may be nothing.
pub(crate) fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match retry(|| stream.write(&bytes[sent..])) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// A signal is no reason to give up.
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
