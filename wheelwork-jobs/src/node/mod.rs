//! A node: it claims the jobs that are due soon, keeps them in a timer wheel, and runs them.
//!
//! The wheel is a cache of the store. Nothing in it has to be saved or repaired.
//!
//! - `heartbeat`: keeps the node alive
//! - `hear`: what the store tells
//! - `work`: looks for jobs, of this node and of dead ones; `claim` claims them, and `limited` those of kinds that
//!   are limited over all nodes
//! - `insert`: stores new jobs
//! - `held`: what the node has claimed
//! - `dispatch`: runs what is due; `confirm` asks the store before, where needed
//! - `finish`: tells the store what has ended; `progress`: tells how far runs are
//! - `expiry`: forgets what is over
//! - `revoke`: claims that were taken away by a cancel or a move
//! - `stop`: the end of the node
//! - `backoff`: how long to wait after the store has failed
//!
//! What calls the store runs on a thread of the node's own, so that a handler that blocks its runtime does
//! not cost the node its life. Handlers run on the runtime of the user.

mod backoff;
mod claim;
mod confirm;
mod dispatch;
mod expiry;
mod finish;
mod hear;
mod heartbeat;
mod held;
mod insert;
mod limited;
mod progress;
mod revoke;
mod stop;
mod work;

pub use self::stop::Stopped;

use self::confirm::Unsure;
use self::finish::Ended;
use self::held::Held;
use self::insert::Request;
use self::revoke::Revocations;
use self::stop::{Parts, Stop};
use self::work::Hearing;
use crate::error::{OpenError, ScheduleError, StopError};
use crate::handler::Handler;
use crate::health::{Condition, Health};
use crate::host::{self, Runtime, Timer};
use crate::job::{JobId, NewJob};
use crate::lock::lock;
use crate::metrics::{Counts, Metrics};
use crate::reports::Reports;
use crate::store::{NodeId, Result, Store, StoreError};
use crate::time::DatabaseClock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, RwLock, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// So many calls of `schedule` wait for the store before further ones wait for room.
const REQUESTS: usize = 4_096;

/// What all parts of a node share.
pub(crate) struct Node<S: Store> {
    pub(crate) store: Arc<S>,
    /// The node's thread.
    runtime: Runtime,
    pub(crate) window: Duration,
    liveness: Duration,
    handlers: Vec<Handler<S>>,
    kinds: Vec<Arc<str>>,
    kind_numbers: HashMap<Arc<str>, usize>,
    timer: Timer,
    held: Mutex<Held>,
    clock: Mutex<DatabaseClock>,
    /// Until when no other node can have taken this one for dead.
    lease: Mutex<Instant>,
    pub(crate) counts: Counts,
    /// The number of this node. `None` before it has joined, after it has left, and if it has no handlers. A task that
    /// asks the store about a number holds the lock until the answer has taken effect: an insertion until what it has
    /// claimed is in `held`, a beat, and a question about claims. So a new number finds all claims of the old one in
    /// `held`. The claims of `work` need no lock for that, because the same task takes the new number. If one is under
    /// way when the node leaves, it claims nothing, or the store frees what it has claimed.
    me: RwLock<Option<NodeId>>,
    /// The same, for what is told. 0 before it has joined.
    number: AtomicI64,
    must_rejoin: AtomicBool,
    /// When a beat was asked for last that was answered.
    last_beat: Mutex<Instant>,
    /// When the life of another node lapses.
    lapse_at: Mutex<Option<Instant>>,
    lapse_changed: Notify,
    /// A beat is wanted before its time.
    beat_now: Notify,
    hearing: Mutex<Hearing>,
    /// Free jobs may be due within the window.
    look: Notify,
    /// There are marks of unique jobs whose periods are over.
    marks_over: Notify,
    /// A run has ended, and the store knows it.
    settled: Notify,
    stopping: CancellationToken,
    /// No request to store a job is left.
    inserted: CancellationToken,
    /// A job of the kind has become due.
    more_due: Vec<Notify>,
    /// Due jobs that the store is asked about first.
    unsure: mpsc::UnboundedSender<Unsure>,
    revocations: Revocations,
    /// Why the node has died.
    fault: Mutex<Option<String>>,
    /// The node's thread does nothing any more.
    ended: CancellationToken,
    ends: mpsc::UnboundedSender<Ended>,
    reports: Arc<Reports>,
    /// Since when the store takes no ends.
    ends_fail_since: Mutex<Option<Instant>>,
}

/// How the rest of the program reaches a node.
pub(crate) struct Link<S: Store> {
    pub(crate) node: Arc<Node<S>>,
    requests: mpsc::Sender<Request>,
    stop: Mutex<Option<oneshot::Sender<Stop>>>,
}

/// What a node is made of.
pub(crate) struct Settings<S: Store> {
    pub(crate) store: S,
    pub(crate) handlers: Vec<Handler<S>>,
    pub(crate) window: Duration,
    pub(crate) liveness: Duration,
    pub(crate) tick: Duration,
    pub(crate) create_tables: bool,
}

impl<S: Store> Link<S> {
    /// Starts a node on a thread of its own. Returns when it has joined the others.
    pub(crate) async fn open(settings: Settings<S>) -> Result<Self, OpenError> {
        let handlers = Runtime::current().ok_or(OpenError::NoRuntime)?;
        let (requests, requested) = mpsc::channel(REQUESTS);
        let (stop, stopped) = oneshot::channel();
        let (opened, opening) = oneshot::channel();
        let live = async move {
            let (node, parts) = match Node::start(settings, &handlers, requested).await {
                Ok(started) => started,
                Err(error) => {
                    let _ = opened.send(Err(error)); // the caller may have given up
                    return;
                }
            };
            // If the caller has given up, the command to stop comes at once.
            let _ = opened.send(Ok(node.clone()));
            node.live(stopped, parts).await;
        };
        Runtime::start(live).map_err(OpenError::Thread)?;
        match opening.await {
            Ok(node) => Ok(Self { node: node?, requests, stop: Mutex::new(Some(stop)) }),
            Err(_) => Err(OpenError::Thread(std::io::Error::other("it has ended"))),
        }
    }

    /// Hands a new job in. The answer comes when the store has it.
    pub(crate) async fn insert(
        &self,
        job: NewJob,
    ) -> Result<oneshot::Receiver<Result<JobId, ScheduleError>>, ScheduleError> {
        if job.has_long_key() {
            return Err(ScheduleError::LongKey { job: Box::new(job) });
        }
        let (answer, answered) = oneshot::channel();
        match self.requests.send(Request { job, answer, since: None }).await {
            Ok(()) => Ok(answered),
            Err(refused) => Err(self.node.refused(refused.0.job)),
        }
    }

    /// Stops the node. Waits for the handlers that run, at most for `limit`.
    pub(crate) async fn stop(&self, limit: Duration) -> Result<Stopped, StopError> {
        let stop = lock(&self.stop).take().ok_or(StopError::Stopped)?;
        let (done, stopped) = oneshot::channel();
        let _ = stop.send(Stop { limit, done }); // the node may have ended
        if let Ok(stopped) = stopped.await {
            return stopped;
        }
        let fault = self.node.ended().await;
        Err(fault.map_or(StopError::Stopped, |reason| StopError::Died { reason }))
    }
}

impl<S: Store> Node<S> {
    async fn start(
        settings: Settings<S>,
        handlers: &Runtime,
        requests: mpsc::Receiver<Request>,
    ) -> Result<(Arc<Self>, Parts), OpenError> {
        let store = Arc::new(settings.store.apart());
        prepare(&*store, settings.create_tables).await?;
        let clock = DatabaseClock::new(store.clock().await?, store.stands_still());
        let timer = host::timer(settings.tick)?;
        let kinds: Vec<_> = settings.handlers.iter().map(|h| h.kind.name.clone()).collect();
        let counts = Counts::new(&kinds);
        let more_due = kinds.iter().map(|_| Notify::new()).collect();
        let (ends, ended) = mpsc::unbounded_channel();
        let (unsure, asked) = mpsc::unbounded_channel();
        let node = Arc::new(Self {
            store,
            runtime: Runtime::here(),
            window: settings.window,
            liveness: settings.liveness,
            kind_numbers: kinds.iter().cloned().zip(0..).collect(),
            held: Mutex::new(Held::new(kinds.len())),
            kinds,
            handlers: settings.handlers,
            timer,
            clock: Mutex::new(clock),
            lease: Mutex::new(host::now()),
            counts,
            me: RwLock::new(None),
            number: AtomicI64::new(0),
            must_rejoin: AtomicBool::new(false),
            last_beat: Mutex::new(host::now()),
            lapse_at: Mutex::new(None),
            lapse_changed: Notify::new(),
            beat_now: Notify::new(),
            hearing: Mutex::default(),
            look: Notify::new(),
            marks_over: Notify::new(),
            settled: Notify::new(),
            stopping: CancellationToken::new(),
            inserted: CancellationToken::new(),
            more_due,
            unsure,
            revocations: Revocations::default(),
            fault: Mutex::new(None),
            ended: CancellationToken::new(),
            ends,
            reports: Arc::default(),
            ends_fail_since: Mutex::new(None),
        });
        if !node.handlers.is_empty() {
            node.join().await?;
        }
        let parts = node.parts(handlers, requests, ended, asked);
        Ok((node, parts))
    }

    /// Starts the tasks of the node.
    fn parts(
        self: &Arc<Self>,
        handlers: &Runtime,
        requests: mpsc::Receiver<Request>,
        ended: mpsc::UnboundedReceiver<Ended>,
        asked: mpsc::UnboundedReceiver<Unsure>,
    ) -> Parts {
        let mut parts = Parts::default();
        parts.start(insert::run(self.clone(), requests));
        parts.start(finish::run(self.clone(), ended));
        parts.start(revoke::look(self.clone()));
        let store = self.store.clone();
        parts.start(async move { store.tend().await });
        if !self.handlers.is_empty() {
            parts.start(heartbeat::run(self.clone()));
            parts.start(hear::run(self.clone()));
            parts.start(revoke::ask(self.clone()));
            parts.start(revoke::acknowledge(self.clone()));
            parts.start(work::run(self.clone()));
            parts.start(confirm::run(self.clone(), asked));
            parts.start(progress::run(self.clone()));
            parts.start(expiry::marks(self.clone()));
        }
        if let Some(shortest) = self.handlers.iter().filter_map(|h| h.kind.keep_done).min() {
            parts.start(expiry::done(self.clone(), shortest));
        }
        for kind in 0..self.kinds.len() {
            parts.watch(handlers.spawn(dispatch::run(self.clone(), kind)));
        }
        parts
    }

    /// Calls the store on the node's thread, where its connections live.
    pub(crate) async fn call<T, F>(&self, call: impl FnOnce(Arc<S>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let called = self.runtime.spawn(call(self.store.clone()));
        called.await.unwrap_or_else(|error| Err(StoreError::new("run after a stop", error)))
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let holds = self.held().by_kind();
        self.counts.read(self.kinds.iter().zip(holds), self.fault().is_some())
    }

    /// How the node is.
    pub(crate) fn health(&self) -> Health {
        let condition = match self.fault() {
            Some(reason) => Condition::Died { reason },
            None if self.stopping.is_cancelled() => Condition::Stopped,
            None if !self.kinds.is_empty() && self.is_cut_off(host::now()) => Condition::CutOff,
            None => Condition::Working,
        };
        let is_node = !self.kinds.is_empty();
        Health {
            condition,
            last_beat: is_node.then(|| host::elapsed(*lock(&self.last_beat))),
            listening: is_node.then(|| self.is_listening()),
        }
    }

    /// Waits until the node's thread does nothing any more. Returns why, if it has died.
    pub(crate) async fn ended(&self) -> Option<String> {
        self.ended.cancelled().await;
        self.fault()
    }

    /// The error of a job that comes too late.
    fn refused(&self, job: NewJob) -> ScheduleError {
        let job = Box::new(job);
        match self.fault() {
            Some(reason) => ScheduleError::Died { job, reason },
            None => ScheduleError::Stopped { job },
        }
    }

    fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// The last number that the node had. `None` if it has no handlers.
    pub(crate) fn me(&self) -> Option<NodeId> {
        Some(NodeId(self.number())).filter(|NodeId(number)| *number > 0)
    }

    /// The last number that the node had.
    fn number(&self) -> i64 {
        self.number.load(Ordering::Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }

    fn clock(&self) -> MutexGuard<'_, DatabaseClock> {
        lock(&self.clock)
    }

    /// Whether no run may begin: another node may have its job, or its end cannot be stored.
    fn is_cut_off(&self, now: Instant) -> bool {
        now >= *lock(&self.lease) || self.ends_fail_for_long(now)
    }

    /// Makes the node take a new number, because it may own jobs that it does not know of.
    fn rejoin(&self) {
        self.must_rejoin.store(true, Ordering::Release);
        self.look.notify_one();
    }

    fn note_error(&self, error: &StoreError) {
        self.counts.count(|all| all.store_errors += 1);
        log::warn!("{error}");
    }
}

/// Makes sure that the tables have the version of the store.
async fn prepare<S: Store>(store: &S, create_tables: bool) -> Result<(), OpenError> {
    let (found, known) = (store.version().await?, S::VERSION);
    if found > known {
        return Err(OpenError::NewerTables { found, known });
    }
    match found {
        _ if found == known => {}
        _ if create_tables => store.prepare().await?,
        0 => return Err(OpenError::NoTables),
        _ => return Err(OpenError::OlderTables { found, known }),
    }
    Ok(())
}

/// Waits until an instant, or for ever if there is none. Also after the timer has stopped.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => host::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
