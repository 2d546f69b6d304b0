//! Streams with idle timeouts: a read or a write of an idle stream fails.

// The files:
//   tokio       tokio's `AsyncRead` and `AsyncWrite` for `IdleStream`
//   futures_io  those of futures-io
//   tonic       tonic's `Connected`
//   pauser      pauses the watch of a stream from elsewhere
//   monitor     the watch of one stream
//   signal      brings a report to the tasks that wait
//   timed_out   the error
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(all(test, loom))]
mod model;
mod monitor;
mod pauser;
mod signal;
mod timed_out;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "tonic")]
mod tonic;

pub use pauser::{OwnedPauseGuard, Pauser};
pub use timed_out::TimedOut;

use super::event::{Idle, IdleEvent};
use super::kind::IdleKind;
use super::outgoing::Outgoing;
use super::policy::IdlePolicy;
use super::timeouts::{IdleTimeouts, ScaleError};
use super::watch::Watch;
use crate::base::sync::Arc;
use crate::timeout::ScheduleError;
use crate::timer::HashedWheelTimer;
use monitor::Monitor;
use pauser::{SharedWatch, StreamWatch};
use pin_project_lite::pin_project;
use signal::{Half, Signal, Silence};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Wraps streams whose reads and writes fail when the stream is idle.
///
/// A program makes one, and clones the handle, which keeps the timer running. See [`IdleStream`] for a program and for
/// the guarantees.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::HashedWheelTimer;
/// # use wheelwork::idle::{IdlePolicy, IdleStreams};
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let connect = || std::net::TcpStream::connect(listener.local_addr()?);
/// # let (first_socket, second_socket) = (connect()?, connect()?);
/// let timer = HashedWheelTimer::new()?;
/// let streams = IdleStreams::new(&timer);
/// let policy = IdlePolicy::new().both(Duration::from_secs(60));
/// let first = streams.wrap(first_socket, &policy)?;
/// let second = streams.wrap(second_socket, &policy)?;
/// assert_eq!(streams.watched(), 2);
/// drop(first);
/// assert_eq!(streams.watched(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct IdleStreams(IdleTimeouts<Arc<Signal>>);

impl IdleStreams {
    /// Creates a manager of streams. It wakes the tasks of idle streams on the executor of `timer`.
    pub fn new(timer: &HashedWheelTimer) -> Self {
        Self(IdleTimeouts::with(timer, Box::new(report), false))
    }

    /// Wraps a stream, which counts as active now. Costs what
    /// [`IdleTimeouts::watch`] costs, and one allocation.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or if the timer or the manager has run out of slots. The error contains the
    /// stream. The timer's limit of pending timeouts does not apply.
    pub fn wrap<S: Outgoing>(
        &self,
        stream: S,
        policy: &IdlePolicy,
    ) -> Result<IdleStream<S>, ScheduleError<S>> {
        self.wrap_with(stream, policy, S::untaken)
    }

    /// Like [`wrap`](Self::wrap), for a stream that has no [`Outgoing`]: `untaken` answers in its place.
    ///
    /// # Errors
    ///
    /// The errors of `wrap`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{IdlePolicy, IdleStreams}};
    /// use std::io::BufWriter;
    /// use wheelwork::idle::Outgoing;
    ///
    /// # let streams = IdleStreams::new(&HashedWheelTimer::new()?);
    /// # let policy = IdlePolicy::new().waiting_write(Duration::from_secs(30));
    /// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let socket = BufWriter::new(std::net::TcpStream::connect(listener.local_addr()?)?);
    /// let stream = streams.wrap_with(socket, &policy, |socket| socket.get_ref().untaken())?;
    /// let in_memory = streams.wrap_with(Vec::<u8>::new(), &policy, |_| None)?; // not known
    /// # drop((stream, in_memory));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wrap_with<S>(
        &self,
        stream: S,
        policy: &IdlePolicy,
        untaken: fn(&S) -> Option<u64>,
    ) -> Result<IdleStream<S>, ScheduleError<S>> {
        let wrapped = self.wrap_by(stream, policy, untaken, |own, _| (StreamWatch::Own(own), ()));
        wrapped.map(|(stream, ())| stream)
    }

    /// Like [`wrap`](Self::wrap), with a [`Pauser`] that pauses the stream's watch from elsewhere. A drop of the
    /// stream ends its reports; the watch ends with the last pauser and guard, and is counted until then.
    /// Costs one more allocation.
    ///
    /// # Errors
    ///
    /// The errors of `wrap`.
    pub fn wrap_with_pauser<S: Outgoing>(
        &self,
        stream: S,
        policy: &IdlePolicy,
    ) -> Result<(IdleStream<S>, Pauser), ScheduleError<S>> {
        self.wrap_by(stream, policy, S::untaken, |watch, signal| {
            let pauser = Pauser(Arc::new(watch), signal);
            (StreamWatch::Shared(SharedWatch(pauser.0.clone())), pauser)
        })
    }

    /// Wraps a stream. `split` decides what the stream has of its watch, and what the caller gets.
    fn wrap_by<S, R>(
        &self,
        stream: S,
        policy: &IdlePolicy,
        untaken: fn(&S) -> Option<u64>,
        split: impl FnOnce(Watch, Arc<Signal>) -> (StreamWatch, R),
    ) -> Result<(IdleStream<S>, R), ScheduleError<S>> {
        let signal = Arc::new(Signal::new());
        match self.0.watch(signal.clone(), policy) {
            Ok(watch) => {
                let (watch, rest) = split(watch, signal.clone());
                let monitor = Monitor::new(watch, signal);
                Ok((IdleStream { stream, untaken, monitor }, rest))
            }
            Err(refused) => Err(refused.map(|_| stream)),
        }
    }

    /// Multiplies all durations but the age and its grace by `factor` until the next call, as
    /// [`IdleTimeouts::scale`] does. Use it under pressure.
    ///
    /// # Errors
    ///
    /// If the factor is negative, infinite or not a number. The previous factor stays in force.
    pub fn scale(&self, factor: f64) -> Result<(), ScaleError> {
        self.0.scale(factor)
    }

    /// The number of streams that are watched now.
    pub fn watched(&self) -> usize {
        self.0.watched()
    }
}

/// Reports the idle streams of a batch. Returns the number of wakers that panicked.
fn report(batch: &mut [Idle<Arc<Signal>>]) -> u64 {
    let mut panics = 0;
    for idle in batch {
        let event = idle.event();
        // At the end of the timer no stream is idle, so no task is woken.
        if event.kind != IdleKind::TimerStopped && idle.is_still_silent() {
            let IdleEvent { silent_for, first, .. } = event;
            let silence = Silence { since: idle.since, silent_for, first };
            panics += idle.connection.report(event.kind, silence);
        } else {
            idle.answer = None;
        }
    }
    panics
}

impl fmt::Debug for IdleStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleStreams").field("watched", &self.watched()).finish_non_exhaustive()
    }
}

pin_project! {
    /// A stream with idle timeouts. Created by [`IdleStreams::wrap`].
    ///
    /// It has tokio's `AsyncRead` and `AsyncWrite` with the feature `tokio`, those of futures-io with the feature
    /// `futures-io`, and tonic's `Connected` with the feature `tonic`. If the stream has been idle for a duration of
    /// its policy, reads and writes fail with an [`io::Error`](std::io::Error) of kind
    /// [`TimedOut`](std::io::ErrorKind::TimedOut), whose source is a [`TimedOut`].
    ///
    /// ```
    /// # #[cfg(feature = "tokio")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::ErrorKind;
    /// use std::time::Duration;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// use wheelwork::HashedWheelTimer;
    /// use wheelwork::idle::{IdlePolicy, IdleStreams};
    ///
    /// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(5)).build()?;
    /// let streams = IdleStreams::new(&timer);
    /// let policy = IdlePolicy::new().reader(Duration::from_millis(20));
    ///
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    /// let (socket, _) = listener.accept().await?;
    /// let mut stream = streams.wrap(socket, &policy)?;
    /// client.write_all(b"hello").await?;
    /// let mut hello = [0; 5];
    /// stream.read_exact(&mut hello).await?;
    /// let idle = stream.read_u8().await.unwrap_err(); // the client is silent for 20 ms
    /// assert_eq!(idle.kind(), ErrorKind::TimedOut);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Guarantees
    ///
    /// - **Only progress counts.** A read or a write that moves at least one byte is a touch, and costs what
    ///   a touch of a [`Watch`] costs. A poll that is pending, the end of the stream, a flush and a shutdown
    ///   do not count. So a slow peer whose bytes flow is not idle.
    /// - **Bytes that the peer takes from the system's buffer are progress.** The system holds megabytes, and may take
    ///   nothing for minutes while a slow peer reads. Before a silence of writes ends the stream, it
    ///   [asks](Outgoing) what the peer has taken meanwhile, and if there is something, the time runs anew. So a
    ///   peer that stops reading is noticed after twice the duration at most.
    /// - **A write waits** ([`waiting_write`](IdlePolicy::waiting_write)) from the first write, flush or shutdown that
    ///   is pending, until a write moves bytes or that flush ends. If a task gives up a pending write, that write
    ///   still waits.
    /// - **Age** ([`max_age`](IdlePolicy::max_age)) ends a stream when it would wait and is not paused: a response that
    ///   a pause covers is finished, and the end of a [`Pauser`]'s guard wakes what waits. A task that
    ///   ends a pause of [`watch`](Self::watch) polls the stream again. After the grace it ends in a pause too. Bytes
    ///   that are ready still come first.
    /// - **Each kind of silence ends both halves**: at a report, the waiting reader and the waiting
    ///   writer are woken and fail, as do a flush and a shutdown that wait. A stream without writes for the
    ///   writer's duration is writer idle even if there was nothing to write.
    /// - **Ready bytes come first.** Every poll asks the stream first, and only one that would wait
    ///   can fail. So bytes that came while the server was busy are read, and end the silence.
    /// - **Never early**: no failure before the stream has been silent for its duration, by the timer's
    ///   clock. Late by less than a tick, plus scheduling.
    /// - **A silent stream stays failed**: each poll that would wait fails, until bytes flow again or the
    ///   watch is touched or paused.
    /// - **No wake-up is lost**, even if the halves of a split stream are polled by two tasks. The latest
    ///   waker of each half is woken, on the timer's executor. If a waker panics, the other one is woken
    ///   nevertheless.
    /// - **After a stop of the timer**, the stream works on without idle timeouts: no task is woken, and a
    ///   read can wait forever. A failure that was reported before the stop stays. So stop the timer after
    ///   the connections have ended.
    /// - **A drop ends the reports** and drops the wakers immediately.
    /// - **Memory**: about 200 bytes for each stream, its watch included. Reads and writes allocate nothing,
    ///   unless the stream itself does; only a report and a failure allocate.
    ///
    /// Wrap the socket itself, inside TLS or a buffer: only bytes that the peer takes or sends should count.
    #[must_use = "dropping the stream closes it"]
    pub struct IdleStream<S> {
        #[pin]
        stream: S,
        untaken: fn(&S) -> Option<u64>,
        monitor: Monitor,
    }
}

impl<S> IdleStream<S> {
    /// The watch of this stream: pause it while the server works on a request, or change the policy. If a library
    /// owns the stream meanwhile, use a [`Pauser`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{IdlePolicy, IdleStreams}};
    /// # let streams = IdleStreams::new(&HashedWheelTimer::new()?);
    /// # let policy = IdlePolicy::new().both(Duration::from_secs(30));
    /// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// let stream = streams.wrap(socket, &policy)?;
    /// {
    ///     let _working = stream.watch().pause();
    ///     // answer the request
    /// }
    /// // the 30 s begin here
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch(&self) -> &Watch {
        &self.monitor.watch
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream. Bytes that are read or written here are not recorded.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, pinned. Bytes that are read or written here are not recorded.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut S> {
        self.project().stream
    }

    /// Ends the reports and returns the stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

/// What the traits of tokio and of futures-io have in common.
impl<S> IdleStream<S> {
    /// Polls the stream for a read or a write of bytes.
    #[inline]
    fn poll_bytes(
        self: Pin<&mut Self>,
        half: Half,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let polled = poll(this.stream.as_mut(), cx);
        this.monitor.judge(half, cx, polled, || (this.untaken)(&this.stream))
    }

    /// Polls the stream for a flush, or for its end.
    #[inline]
    fn poll_end(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let polled = poll(this.stream.as_mut(), cx);
        this.monitor.judge_flush(cx, polled, || (this.untaken)(&this.stream))
    }
}

impl<S: fmt::Debug> fmt::Debug for IdleStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleStream")
            .field("stream", &self.stream)
            .field("watch", self.watch())
            .finish()
    }
}
