//! An echo server with one event loop on mio, which closes idle connections.
//!
//! The timer's thread must not touch a connection that the loop owns. So an idle event only sends
//! its token to the loop, which reads what has come and then decides. A token that comes late, or
//! for a connection that is gone, does no harm.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);

/// How soon to accept again after an error. The usual one is that there is no free descriptor.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// The server, and all that it needs.
pub(crate) struct Server {
    poll: Poll,
    listener: TcpListener,
    /// It can tell how long the connections have been silent.
    pub(crate) idle: IdleTimeouts<Token>,
    limit: Duration,
    policy: IdlePolicy,
    /// The tokens that the idle events send.
    silent: Receiver<Token>,
    connections: HashMap<Token, Connection>,
    /// Counts up, so that a late token never means a newer connection.
    next_token: usize,
    chunk: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    /// Read, and not yet taken by the socket.
    unsent: Vec<u8>,
    peer_sends: bool,
    watch: Watch,
}

impl Server {
    /// A server of `listener` that closes what sends nothing for `limit`.
    pub(crate) fn new(
        listener: std::net::TcpListener,
        timer: &HashedWheelTimer,
        limit: Duration,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (sender, silent) = mpsc::channel();
        let idle = IdleTimeouts::new(timer, move |token: &mut Token, _| {
            // Both fail only when the loop has ended, and then there is nobody to tell.
            let _ = sender.send(*token);
            let _ = waker.wake();
            Answer::KeepWatching
        });
        let policy = IdlePolicy::new().reader(limit);
        let (connections, chunk) = (HashMap::new(), vec![0; 16 * 1024]);
        Ok(Self {
            poll,
            listener,
            idle,
            limit,
            policy,
            silent,
            connections,
            next_token: WAKER.0 + 1,
            chunk,
        })
    }

    /// Serves until an error. Counts the connections that it closes as idle in `closed`.
    pub(crate) fn run(mut self, closed: &AtomicU64) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut is_accepting = false;
        loop {
            match self.poll.poll(&mut events, is_accepting.then_some(ACCEPT_AGAIN)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => is_accepting = true,
                    WAKER => {}
                    token => self.echo(token),
                }
            }
            if is_accepting {
                is_accepting = !self.accept_all()?;
            }
            while let Ok(token) = self.silent.try_recv() {
                // What lies unread in the socket counts.
                self.echo(token);
                let connection = self.connections.get(&token);
                if connection.is_some_and(|connection| connection.watch.silent_for() >= self.limit)
                {
                    closed.fetch_add(1, Ordering::Relaxed);
                    self.connections.remove(&token);
                }
            }
        }
    }

    /// Returns whether nobody waits any more.
    fn accept_all(&mut self) -> io::Result<bool> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream)?,
                Err(error) => return Ok(error.kind() == ErrorKind::WouldBlock),
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let token = Token(self.next_token);
        self.next_token += 1;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, token, interest)?;
        let watch = self.idle.watch(token, &self.policy).map_err(io::Error::other)?;
        let connection = Connection { stream, unsent: Vec::new(), peer_sends: true, watch };
        self.connections.insert(token, connection);
        Ok(())
    }

    fn echo(&mut self, token: Token) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        match connection.echo(&mut self.chunk) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                self.connections.remove(&token);
            }
            _ => {}
        }
    }
}

impl Connection {
    /// Gives back what it gets until the socket would block, as edge-triggered events demand. While
    /// the peer does not take its echo, nothing is read from it, so in the end it is idle.
    fn echo(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        loop {
            while !self.unsent.is_empty() {
                let sent = self.stream.write(&self.unsent)?;
                self.unsent.drain(..sent);
            }
            if !self.peer_sends {
                return Ok(());
            }
            let read = self.stream.read(chunk)?;
            self.peer_sends = read > 0;
            if self.peer_sends {
                self.watch.record_read();
            }
            self.unsent.extend_from_slice(&chunk[..read]);
        }
    }
}
