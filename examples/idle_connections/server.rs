//! The server: one thread, one event loop, and an idle timeout for each connection.

use crate::alarm::Alarms;
use crate::echo::{CHUNK, Echo, Look, retry};
use crate::limits;
use crate::slots::{Key, Slots};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wheelwork::Metrics;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// How soon to accept again after the system had no file or no memory for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// What the server can say of itself at the end. The verdict does not rest on it.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) closed_as_idle: u64,
    pub(crate) timer: Metrics,
}

/// A running server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<io::Result<Report>>,
}

impl Server {
    pub(crate) fn start(idle: Duration, tick: Duration) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let mut event_loop = EventLoop::new(idle, tick, stopping.clone())?;
        let address = event_loop.listener.local_addr()?;
        let waker = event_loop.alarms.waker();
        let thread =
            thread::Builder::new().name("server".to_owned()).spawn(move || event_loop.run())?;
        Ok(Self { address, stopping, waker, thread })
    }

    /// Whether the event loop has ended, which it only does by itself after an error.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn stop(self) -> io::Result<Report> {
        self.stopping.store(true, Ordering::Relaxed);
        self.waker.wake()?;
        self.thread.join().map_err(|_| io::Error::other("the server's thread panicked"))?
    }
}

struct EventLoop {
    poll: Poll,
    listener: TcpListener,
    /// The listener had more than the system had files for, and its edge-triggered event is spent.
    accept_again: bool,
    connections: Slots<Echo>,
    alarms: Alarms,
    idle: Duration,
    chunk: Box<[u8; CHUNK]>,
    closed_as_idle: u64,
    stopping: Arc<AtomicBool>,
}

impl EventLoop {
    fn new(idle: Duration, tick: Duration, stopping: Arc<AtomicBool>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let alarms = Alarms::new(poll.registry(), WAKER, tick, idle)?;
        Ok(Self {
            poll,
            listener,
            accept_again: false,
            connections: Slots::new(),
            alarms,
            idle,
            chunk: Box::new([0; CHUNK]),
            closed_as_idle: 0,
            stopping,
        })
    }

    fn run(&mut self) -> io::Result<Report> {
        let mut events = Events::with_capacity(1024);
        while !self.stopping.load(Ordering::Relaxed) {
            let patience = self.accept_again.then_some(ACCEPT_AGAIN);
            retry(|| self.poll.poll(&mut events, patience))?;
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_again = true,
                    WAKER => {}
                    token => self.on_ready(token.into())?,
                }
            }
            if self.accept_again {
                self.accept_all()?;
            }
            while let Some(key) = self.alarms.next_due() {
                self.on_due(key)?;
            }
        }
        Ok(Report { closed_as_idle: self.closed_as_idle, timer: self.alarms.metrics() })
    }

    fn accept_all(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream)?,
                Err(error) => match error.kind() {
                    // The peer was gone before its turn came.
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    ErrorKind::WouldBlock => {
                        self.accept_again = false;
                        return Ok(());
                    }
                    // What is not accepted stays in the backlog until a connection is closed.
                    _ if limits::is_exhaustion(&error) => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let token = self.connections.next_key().into();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, token, interest)?;
        let key = self.connections.insert(Echo::new(stream));
        self.arm(key)
    }

    fn on_ready(&mut self, key: Key) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        match connection.pump(&mut self.chunk) {
            Look::Nothing => Ok(()),
            Look::Activity => self.arm(key),
            Look::Gone => {
                self.connections.remove(key);
                Ok(())
            }
        }
    }

    /// The timeout of a connection has expired. Bytes may have come since it was set, and may lie
    /// unread in the socket even now: they count, so look before closing.
    fn on_due(&mut self, key: Key) -> io::Result<()> {
        self.on_ready(key)?;
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        if connection.last_activity.elapsed() < self.idle {
            return self.arm(key);
        }
        self.connections.remove(key);
        self.closed_as_idle += 1;
        Ok(())
    }

    fn arm(&mut self, key: Key) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        self.alarms.set(&mut connection.alarm, key, connection.last_activity + self.idle)
    }
}
