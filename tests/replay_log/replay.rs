//! The replay: one idle timeout for each host, on a clock that jumps from request to request.
//!
//! 1. Before a request, the clock is advanced to its time; that runs every timeout that is due.
//! 2. A host that has no session gets one, with a timeout; one that has pushes its timeout back.
//! 3. A coarse tick makes the timer late, never early. So a request may find a session whose
//!    deadline has passed or is now: that session has ended there, and the request begins the next.
//! 4. A session's end is its timeout's own deadline, so the tick cannot be seen in it, and a
//!    deadline that the timer got wrong can.

use crate::check::Session;
use crate::log::Request;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use wheelwork::metrics::Metrics;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::Clock as _;
use wheelwork::{BuildError, HashedWheelTimer, ManualClock, RescheduleError, Timeout};

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Seconds of silence that end a session.
    pub(crate) idle: i64,
    pub(crate) tick: Duration,
    pub(crate) ticks_per_wheel: usize,
}

/// What came of it, besides the sessions.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) metrics: Metrics,
    pub(crate) took: Duration,
}

/// Why a replay was given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    #[error("cannot build the timer: {0}")]
    Build(#[from] BuildError),
    #[error("cannot write a session's end: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// A promise that the timer did not keep.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the timer refused a timeout: {0}")]
    Refused(String),
    #[error("the timer did not push a pending timeout back: {0}")]
    Kept(#[from] RescheduleError),
    #[error("a timeout ran {0:?} before its deadline: expected never")]
    Early(Duration),
    #[error("a timeout ended for a host without a session, or without a deadline")]
    Stray,
    #[error("a deadline lies {0:?} after the first request: expected whole seconds")]
    Fraction(Duration),
    #[error("a pending timeout could not be cancelled")]
    NotCancelled,
    #[error(
        "{pending} timeouts are pending after the last deadline, with {live} live sessions: expected 0"
    )]
    Pending { pending: usize, live: usize },
    #[error(
        "the timer's counts do not add up: expected {expected} timeouts scheduled and ended, found {metrics:?}"
    )]
    Counts { expected: u64, metrics: Box<Metrics> },
}

/// Replays `requests`, which stand in order of time, and hands over each session as it ends.
/// `progress` is told how many requests have been replayed since it was last told.
pub(crate) fn replay(
    requests: &[Request],
    hosts: usize,
    settings: Settings,
    on_end: impl FnMut(Session) -> io::Result<()>,
    mut progress: impl FnMut(usize),
) -> Result<Outcome, ReplayError> {
    let started = Instant::now();
    let first = requests.first().map_or(0, |request| request.time);
    let last = requests.last().map_or(0, |request| request.time);
    let mut replay = Replay::start(first, hosts, settings, on_end)?;
    for second in requests.chunk_by(|one, next| one.time == next.time) {
        replay.advance_to(second[0].time)?;
        for &request in second {
            replay.request(request)?;
        }
        progress(second.len());
    }
    replay.advance_to(last + settings.idle)?;
    // The last deadline may lie within a tick; its end is less than a tick away.
    replay.advance(settings.tick)?;
    let metrics = replay.account()?;
    Ok(Outcome { metrics, took: started.elapsed() })
}

struct Replay<F> {
    clock: ManualClock,
    timer: HashedWheelTimer,
    idle: i64,
    /// The time of the first request: on the clock, and in the log's Unix seconds.
    origin: Instant,
    first: i64,
    /// The session of each host, by the host's number.
    live: Vec<Option<Live>>,
    begun: u64,
    on_end: F,
    expiries: Sender<Expiry>,
    expired: Receiver<Expiry>,
}

struct Live {
    timeout: Timeout,
    session: Session,
}

/// What a timeout's run says of itself.
struct Expiry {
    host: u32,
    deadline: Option<Instant>,
    now: Instant,
}

/// The task of a host's timeout.
struct EndSession {
    host: u32,
    expiries: Sender<Expiry>,
}

impl TimerTask for EndSession {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let expiry = Expiry { host: self.host, deadline: Some(run.deadline()), now: run.now() };
        // Nobody listens any more when the replay was given up.
        let _ = self.expiries.send(expiry);
        Next::done()
    }
}

impl<F: FnMut(Session) -> io::Result<()>> Replay<F> {
    fn start(first: i64, hosts: usize, settings: Settings, on_end: F) -> Result<Self, BuildError> {
        let clock = ManualClock::new();
        let timer = HashedWheelTimer::builder()
            .tick_duration(settings.tick)
            .ticks_per_wheel(settings.ticks_per_wheel)
            .thread_name("replay-timer")
            .clock(clock.clone())
            .build()?;
        let (origin, idle) = (clock.now(), settings.idle);
        let live = (0..hosts).map(|_| None).collect();
        let (expiries, expired) = mpsc::channel();
        Ok(Self { clock, timer, idle, origin, first, live, begun: 0, on_end, expiries, expired })
    }

    fn advance_to(&mut self, time: i64) -> Result<(), ReplayError> {
        self.advance(self.since_first(time).saturating_sub(self.clock.elapsed()))
    }

    /// Tasks run on the worker and the clock waits for them, so all that was due is there to read.
    fn advance(&mut self, by: Duration) -> Result<(), ReplayError> {
        self.clock.advance_in_one_jump(by);
        while let Ok(Expiry { host, deadline, now }) = self.expired.try_recv() {
            let live = self.live[host as usize].take().ok_or(Broken::Stray)?;
            let deadline = deadline.ok_or(Broken::Stray)?;
            if now < deadline {
                return Err(Broken::Early(deadline - now).into());
            }
            self.end(live.session, deadline)?;
        }
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<(), ReplayError> {
        let deadline = self.instant_at(request.time + self.idle);
        match self.live[request.host as usize].take() {
            Some(live) if live.session.end <= request.time => {
                self.end_late(live)?;
                self.begin(request, deadline)?;
            }
            Some(mut live) => {
                live.timeout.reschedule_at(deadline).map_err(Broken::Kept)?;
                live.session.end = request.time + self.idle;
                live.session.last = request.time;
                live.session.requests += 1;
                self.live[request.host as usize] = Some(live);
            }
            None => self.begin(request, deadline)?,
        }
        Ok(())
    }

    fn begin(&mut self, request: Request, deadline: Instant) -> Result<(), Broken> {
        let task = EndSession { host: request.host, expiries: self.expiries.clone() };
        let timeout = self.timer.new_timeout_at(task, deadline);
        let timeout = timeout.map_err(|error| Broken::Refused(error.to_string()))?;
        let session = Session::begin(request, self.idle);
        self.live[request.host as usize] = Some(Live { timeout, session });
        self.begun += 1;
        Ok(())
    }

    /// Ends a session whose timeout is due within the current tick and has not run yet.
    fn end_late(&mut self, live: Live) -> Result<(), ReplayError> {
        let deadline = live.timeout.deadline().ok_or(Broken::Stray)?;
        if !live.timeout.cancel() {
            return Err(Broken::NotCancelled.into());
        }
        self.end(live.session, deadline)
    }

    fn end(&mut self, session: Session, deadline: Instant) -> Result<(), ReplayError> {
        let since_first = deadline.saturating_duration_since(self.origin);
        if since_first.subsec_nanos() != 0 {
            return Err(Broken::Fraction(since_first).into());
        }
        let end = self.first + since_first.as_secs() as i64;
        (self.on_end)(Session { end, ..session })?;
        Ok(())
    }

    /// Every session that was begun has ended, and the timer has counted each of them once.
    fn account(&self) -> Result<Metrics, Broken> {
        let pending = self.timer.pending_timeouts();
        let live = self.live.iter().flatten().count();
        if pending + live > 0 {
            return Err(Broken::Pending { pending, live });
        }
        let metrics = self.timer.metrics();
        let ended = metrics.expired + metrics.cancelled;
        if (metrics.scheduled, ended) != (self.begun, self.begun) {
            return Err(Broken::Counts { expected: self.begun, metrics: Box::new(metrics) });
        }
        Ok(metrics)
    }

    fn since_first(&self, time: i64) -> Duration {
        Duration::from_secs(time.saturating_sub(self.first).unsigned_abs())
    }

    fn instant_at(&self, time: i64) -> Instant {
        self.origin + self.since_first(time)
    }
}
