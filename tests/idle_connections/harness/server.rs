//! The server under test, on a thread of its own. It ends with the process.

use crate::servers::{mio_server, threaded_server, tokio_server};
use clap::ValueEnum;
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::metrics::Metrics;

/// How many clients may wait to be accepted. The standard library allows 128.
const BACKLOG: i32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// One event loop, on mio.
    Mio,
    /// A thread for each connection.
    Threaded,
    /// A tokio task for each connection.
    Tokio,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    timer: HashedWheelTimer,
    closed: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

/// The server's own account.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) closed_as_idle: u64,
    pub(super) timer: Metrics,
}

impl Server {
    pub(super) fn start(kind: Kind, limit: Duration, tick: Duration) -> io::Result<Self> {
        let timer = HashedWheelTimer::builder().tick_duration(tick).thread_name("idle-timer");
        let timer = timer.build().map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        SockRef::from(&listener).listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let closed = Arc::new(AtomicU64::new(0));
        let (with, count) = (timer.clone(), closed.clone());
        let thread = thread::Builder::new().name("server".to_owned());
        let thread = thread.spawn(move || match kind {
            Kind::Mio => mio_server::Server::new(listener, &with, limit)?.run(&count),
            Kind::Threaded => threaded_server::serve(listener, &with, limit, &count),
            Kind::Tokio => tokio_server::serve(listener, &with, limit, &count),
        })?;
        Ok(Self { address, timer, closed, thread })
    }

    /// Whether it has ended, which it only does after an error.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// # Errors
    ///
    /// Why it has ended, if it has.
    pub(super) fn report(self) -> io::Result<Report> {
        if self.has_ended() {
            let ended = self.thread.join();
            ended.map_err(|_| io::Error::other("the server's thread panicked"))??;
        }
        let closed_as_idle = self.closed.load(Ordering::Relaxed);
        Ok(Report { closed_as_idle, timer: self.timer.metrics() })
    }
}
