//! What the timer has to do: requests, sessions and connections, and the trouble that the keys make.
//!
//! - `fill`: the timeouts in each bucket
//! - `requests`: threads that schedule, cancel and push back
//! - `connections`: a thread that reads from connections, and replaces those that were silent for too long
//! - `trouble`: a burst, a storm and a stall

mod connections;
mod fill;
mod requests;
#[cfg(test)]
mod tests;
mod trouble;

use connections::Connections;
use fill::Fill;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wheelwork::{BuildError, HashedWheelTimer};

pub(crate) use connections::{AGES, IDLE_AFTER};

pub(crate) const TICK: Duration = Duration::from_millis(20);
pub(crate) const BUCKETS: usize = 512;

/// The threads that schedule.
pub(crate) const THREADS: u32 = 2;

#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Requests that begin in each second.
    pub(crate) requests: u32,
    pub(crate) connections: u32,
}

/// A timer and its load. Its drop ends the load's threads.
pub(crate) struct Load {
    pub(crate) timer: HashedWheelTimer,
    pub(crate) fill: Arc<Fill>,
    pub(crate) connections: Arc<Connections>,
    news: Arc<Mutex<String>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(size: Size) -> Result<Self, BuildError> {
        let timer = HashedWheelTimer::builder()
            .tick_duration(TICK)
            .ticks_per_wheel(BUCKETS)
            .thread_name("top")
            .build()?;
        let fill = Arc::new(Fill::new(&timer));
        let ends = Arc::new(AtomicBool::new(false));
        let (connections, reader) = connections::start(&timer, size.connections, &ends);
        let each = size.requests / THREADS;
        let mut threads: Vec<_> =
            (0..THREADS).map(|seed| requests::start(&timer, &fill, &ends, each, seed)).collect();
        threads.push(reader);
        Ok(Self { timer, fill, connections, news: Arc::default(), ends, threads })
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
