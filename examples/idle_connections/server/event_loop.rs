//! One thread, one event loop on mio.
//!
//! The timer's worker must not touch a connection that the loop owns. So an idle event only says
//! "look at this connection", and the loop then decides by what it knows itself. A message that
//! comes too late, or twice, or for a connection that is gone, is harmless.

use super::{ACCEPT_AGAIN, Closed, Report, Server, Terms};
use crate::echo::{CHUNK, Echo, Look, retry};
use crate::limits;
use crate::slots::{Key, Slots};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use wheelwork::idle::{Answer, IdleTimeouts};

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

pub(super) struct Loop {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<io::Result<Report>>,
}

pub(super) fn start(terms: Terms) -> io::Result<Loop> {
    let stopping = Arc::new(AtomicBool::new(false));
    let mut event_loop = EventLoop::new(terms, stopping.clone())?;
    let address = event_loop.listener.local_addr()?;
    let waker = event_loop.waker.clone();
    let thread = thread::Builder::new().name("server".to_owned());
    let thread = thread.spawn(move || event_loop.run())?;
    Ok(Loop { address, stopping, waker, thread })
}

impl Server for Loop {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn stop(self: Box<Self>) -> io::Result<Report> {
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
    terms: Terms,
    idle: IdleTimeouts<Key>,
    /// The connections that were reported as idle.
    due: Receiver<Key>,
    waker: Arc<Waker>,
    chunk: Box<[u8; CHUNK]>,
    closed: Closed,
    stopping: Arc<AtomicBool>,
}

impl EventLoop {
    fn new(terms: Terms, stopping: Arc<AtomicBool>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (sender, due) = mpsc::channel();
        let wake = waker.clone();
        let idle = IdleTimeouts::new(&terms.timer, move |key: &mut Key, _| {
            // Both fail only when the loop has ended, and then there is nobody to tell.
            let _ = sender.send(*key);
            let _ = wake.wake();
            Answer::KeepWatching
        });
        Ok(Self {
            poll,
            listener,
            accept_again: false,
            connections: Slots::new(),
            terms,
            idle,
            due,
            waker,
            chunk: Box::new([0; CHUNK]),
            closed: Closed::default(),
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
            while let Ok(key) = self.due.try_recv() {
                self.on_due(key)?;
            }
        }
        Ok(self.closed.report(&self.terms))
    }

    fn accept_all(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream)?,
                Err(error) if limits::is_peers(&error) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accept_again = false;
                    return Ok(());
                }
                // What is not accepted stays in the backlog until a connection is closed.
                Err(error) if limits::is_exhaustion(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let key = self.connections.next_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, key.into(), interest)?;
        let watch = self.idle.watch(key, &self.terms.policy).map_err(io::Error::other)?;
        self.connections.insert(Echo::new(stream, watch));
        Ok(())
    }

    fn on_ready(&mut self, key: Key) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        if connection.pump(&mut self.chunk) == Look::Gone {
            self.connections.remove(key);
        }
        Ok(())
    }

    /// Reported as idle. Bytes may have come since, and may lie unread in the socket even now: they
    /// count, so look before closing.
    fn on_due(&mut self, key: Key) -> io::Result<()> {
        self.on_ready(key)?;
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        if connection.watch.silent_for() >= self.terms.idle {
            self.connections.remove(key);
            self.closed.count();
        }
        Ok(())
    }
}
