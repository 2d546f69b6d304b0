//! What the timer has to do: requests, sessions and connections, and the trouble that the keys make.
//!
//! - `fill`: the timeouts in each bucket
//! - `requests`: threads that schedule, cancel and push back
//! - `connections`: a server with real connections, which are silent for too long now and then
//! - `mio_server`, `clients`: both ends of these, from the example `idle_connections`
//! - `trouble`: a burst, a storm and a stall

#[allow(dead_code)] // some of it is for clients in a process of their own
#[path = "../../../../tests/idle_connections/harness/clients/mod.rs"]
mod clients;
mod connections;
mod fill;
#[path = "../../../idle_connections/mio_server.rs"]
mod mio_server;
mod requests;
#[cfg(test)]
mod tests;
mod trouble;

use connections::Connections;
use fill::Fill;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use wheelwork::HashedWheelTimer;

pub(crate) use connections::{AGES, IDLE_AFTER};

pub(crate) const TICK: Duration = Duration::from_millis(20);
pub(crate) const BUCKETS: usize = 512;

/// The threads that schedule all the time.
pub(crate) const THREADS: u32 = 2;

#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Requests that begin in each second.
    pub(crate) requests: u32,
    pub(crate) connections: u32,
}

/// A timer and its load. Its drop ends the load's threads, except for the server's.
pub(crate) struct Load {
    pub(crate) timer: HashedWheelTimer,
    pub(crate) fill: Arc<Fill>,
    pub(crate) connections: Arc<Connections>,
    news: Arc<Mutex<String>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(size: Size) -> io::Result<Self> {
        let timer = HashedWheelTimer::builder()
            .tick_duration(TICK)
            .ticks_per_wheel(BUCKETS)
            .thread_name("top")
            .build()
            .map_err(io::Error::other)?;
        let fill = Arc::new(Fill::new(&timer));
        let ends = Arc::new(AtomicBool::new(false));
        let (connections, clients) = connections::start(&timer, size.connections, &ends)?;
        let news = Arc::default();
        let mut load = Self { timer, fill, connections, news, ends, threads: vec![clients] };
        for number in 1..=THREADS {
            load.threads.push(requests::start(&load, size.requests / THREADS, number)?);
        }
        Ok(load)
    }

    /// What came of the last trouble.
    pub(crate) fn news(&self) -> String {
        self.news.lock().map(|news| news.clone()).unwrap_or_default()
    }

    /// Ends the threads. Their timeouts stay in the timer.
    pub(crate) fn end_threads(&mut self) {
        self.ends.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end_threads();
    }
}

/// Starts a thread with this name. The view shows the name beside the thread's queue.
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name).spawn(run)
}
