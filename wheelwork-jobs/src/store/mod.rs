//! Where jobs are kept.
//!
//! A job is one row. Its `owner` is the node that has claimed it, and its `epoch` grows with each claim:
//! whoever ends a job names the epoch of its claim, and does nothing if the row has another one by now.
//! A node is one row as well, with the time until which it is alive.
//!
//! - `redb`: jobs in one file, for one process
//! - `postgres`: jobs in a database that many nodes share
//! - `glance`: what both count for an operator
#![cfg_attr(not(all(feature = "redb", feature = "postgres")), allow(dead_code))] // each uses a part of the calls

mod glance;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redb")]
pub(crate) mod redb;

pub use self::glance::Glance;
pub(crate) use self::glance::Most;
use crate::group::Members;
use crate::job::{JobId, NewJob, Progress, State, StoredJob, When};
use crate::kind::Rate;
use crate::time::{Reading, Timestamp};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// A store of jobs: `Redb` or `Postgres`. [`Jobs`](crate::Jobs) works with either.
///
/// The trait is sealed.
#[allow(private_bounds)] // it is sealed
pub trait Store: Calls + Send + Sync + 'static {
    /// The version of the tables that this store works with.
    const VERSION: u32;

    /// The version of the tables in the database. 0 if there are none.
    fn version(&self) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// Creates the tables, or brings older ones to [`VERSION`](Self::VERSION). Leaves newer ones as they are.
    fn prepare(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads the database's clock.
    fn clock(&self) -> impl Future<Output = Result<Reading, StoreError>> + Send;
}

/// What the store answers to a call.
pub(crate) trait Answer<T>: Future<Output = Result<T>> + Send {}

impl<T, F: Future<Output = Result<T>> + Send> Answer<T> for F {}

/// The errors are mostly those of a store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What a node asks of its store.
///
/// Each job is changed in one atomic step: as a whole or not at all. A call for many jobs, or for a node,
/// may take several steps. After an error it may have done some of them, and it can be called again. Times
/// are those of the store's own clock.
///
/// A call can be dropped before its answer, when the node stops. Then it is not known what it has done.
pub(crate) trait Calls: Sized + Send + Sync + 'static {
    /// Whether the clock shows the same until a [`Notice::Clock`] comes.
    fn stands_still(&self) -> bool {
        false
    }

    /// The same store for one `Jobs`, whose calls do not end when others are stopped.
    fn apart(self) -> Self {
        self
    }

    /// Makes a new node, which is alive for `liveness`. It takes those of `keep` which the node `old`
    /// still owns. The node `old` ends, and what it owned beyond these is free. After an error, it is called
    /// with the same `old` again, and also finds what the failed call has taken.
    ///
    /// A job whose handler was called counts as kept also if its row is locked, as by the handler's transaction. As long
    /// as the new node beats, nobody else claims it.
    ///
    /// A call of the node `old` that is still under way claims nothing after this.
    fn join(&self, old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> impl Answer<Joined>;

    /// Ends a node. The jobs that it owned are free, and the others are told, even if it owned nothing: a job of a
    /// limited kind may have ended when the node looked for no more.
    fn leave(&self, node: NodeId) -> impl Answer<()>;

    /// Tells the nodes to look for jobs.
    fn tell(&self) -> impl Answer<()>;

    /// Prolongs the life of a node by `liveness` from now, and looks around. Finds each claim of the node that was
    /// revoked before the call, unless the node has acknowledged it.
    fn beat(&self, node: NodeId, liveness: Duration, kinds: &[Arc<str>]) -> impl Answer<Beat>;

    /// Ends the nodes whose life has lapsed, and frees what they owned, for a moment. Returns how many jobs
    /// that was. If there are more, the next beat says that a life has lapsed already.
    fn take_over(&self) -> impl Answer<u64>;

    /// Stores jobs. Claims those of them that may be claimed and are due within the window, and tells the
    /// nodes if others are due within it. Returns one answer for each. Each job is one step: that one is
    /// not stored hinders no other one, and a job whose key is held by an open transaction keeps nobody
    /// waiting.
    fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> impl Answer<Vec<Insertion>>;

    /// Claims free jobs that are due within the window, of each kind as many as there is room for: first those
    /// that are due already, by their priority, then the others. The earliest of equals comes first.
    fn claim(
        &self,
        node: NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> impl Answer<Vec<Claimed>>;

    /// Claims free jobs that are due, of a kind that is limited over all nodes: as many as the node has room for
    /// and the limits allow. Waits for no other node that does the same.
    fn claim_limited(
        &self,
        node: NodeId,
        window: Duration,
        kind: &Arc<str>,
        room: usize,
        limits: KindLimits,
    ) -> impl Answer<ClaimedLimited>;

    /// Which of these claims the node still has.
    fn holding(&self, node: NodeId, claims: &[Claim]) -> impl Answer<Vec<Claim>>;

    /// Counts the beginning of a run of each job whose claim the node still has. Answers for these alone.
    /// A run that is counted and whose end is not stored has ended with its process, or still runs.
    fn start(&self, node: NodeId, claims: &[Claim]) -> impl Answer<Vec<Started>>;

    /// Ends runs, each if its claim still holds. Returns one answer for each. If it is called again because
    /// the answer was lost, this changes nothing. An obstacle to one end hinders no other.
    fn finish(&self, ends: &[End]) -> impl Answer<Vec<Finished>>;

    /// Deletes a job, and tells its owner. `None` if there is no such job. The claim of another node than `me` is
    /// revoked.
    fn cancel(&self, id: JobId, me: Option<NodeId>) -> impl Answer<Option<Cancelled>>;

    /// Frees a job with a new due time, and tells its owner and those who have to claim it. A dead job
    /// is changed only if `dead`, and then it is not dead any more and has no attempts. One with another due time than
    /// `from` is not changed. The claim of another node than `me` is revoked.
    fn reschedule(
        &self,
        id: JobId,
        when: When,
        window: Duration,
        dead: bool,
        from: Option<Timestamp>,
        me: Option<NodeId>,
    ) -> impl Answer<Option<Removed>>;

    /// Stores a job without a claim, in place of the one that has its key, in one step. Tells the owner of
    /// that one, and the nodes if the new one is due within the window. The claim of another node than `me` is
    /// revoked.
    fn replace(&self, window: Duration, job: &NewJob, me: Option<NodeId>) -> impl Answer<Replaced>;

    /// Those of the revoked claims that their nodes may still begin to run: the node has not acknowledged it, and
    /// has not ended. Ends nodes among these whose lives have lapsed.
    fn revoked(&self, claims: &[(NodeId, Claim)]) -> impl Answer<Vec<(NodeId, Claim)>>;

    /// A node acknowledges that claims of its own were revoked: from now on it does not begin to run them.
    fn acknowledge(&self, node: NodeId, claims: &[Claim]) -> impl Answer<()>;

    /// Deletes dead jobs, of one kind or all, that were due before a time, at most `most`. Returns how many
    /// that were.
    fn prune(&self, kind: Option<&str>, before: Timestamp, most: usize) -> impl Answer<usize>;

    /// Deletes jobs that are kept and were done before a time, at most `most`. Returns how many that were.
    fn prune_done(&self, before: Timestamp, most: usize) -> impl Answer<usize>;

    /// Pauses a kind on all nodes, or resumes it, and tells them. False if it was so already. While a kind is
    /// paused, none of its jobs is claimed.
    fn set_paused(&self, kind: &str, paused: bool) -> impl Answer<bool>;

    /// Those of the jobs that are stored, and whether they are dead.
    fn stored(&self, ids: &[JobId]) -> impl Answer<Vec<(JobId, bool)>>;

    /// Notes how far runs are, each if its claim still holds. An obstacle to one hinders no other.
    fn report(&self, reports: &[(Claim, Progress)]) -> impl Answer<()>;

    /// Deletes jobs that are done and were kept long enough, at most `most`. Returns how many that were.
    fn forget_done(&self, most: usize) -> impl Answer<usize>;

    /// Deletes marks of unique jobs whose periods are over, at most `most`. Returns how many that were.
    fn unmark(&self, most: usize) -> impl Answer<usize>;

    /// One job, also if it is done and kept.
    fn get(&self, id: JobId) -> impl Answer<Option<StoredJob>>;

    /// The job that has a key.
    fn find(&self, key: &str) -> impl Answer<Option<StoredJob>>;

    /// The jobs that a filter selects, the earliest first.
    fn list(&self, filter: &Filter) -> impl Answer<Vec<StoredJob>>;

    /// Counts the jobs of each kind, up to some limits. Reads no more than it counts.
    fn glance(&self, most: Most) -> impl Answer<Glance>;

    /// Some jobs without their payloads, at a cost that has a limit.
    fn peek(&self, peek: &Peek) -> impl Answer<Vec<StoredJob>>;

    /// What the store has to do beside its calls. Awaited for as long as the jobs are open.
    fn tend(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Forwards what the database tells, for as long as it is awaited. Sends [`Notice::Lost`] when it finds
    /// that notices may get lost, at the latest when a beat fails or the next one is answered, and
    /// [`Notice::Listening`] when they come again, and at the beginning.
    fn listen(&self, notices: UnboundedSender<Notice>) -> impl Future<Output = ()> + Send;
}

/// A transaction of yours in the database of the store `S`. It is handed in by reference:
///
/// | store | transaction |
/// |---|---|
/// | `Redb` | `&RedbTransaction` |
/// | `Postgres` | `&tokio_postgres::Transaction`; of a pool's, `&*transaction` |
/// | the same, with the feature `sqlx` | `&mut` of `sqlx::Transaction` or `PgConnection`; of a pool, `&mut *connection` |
/// | the same, with the feature `diesel-async` | `&mut AsyncPgConnection`; of a pool, `&mut **connection` |
///
/// A connection of sqlx or diesel-async without a transaction stores or ends the job at once.
///
/// ```no_run
/// # #[cfg(feature = "sqlx")]
/// # async fn order(pool: sqlx::PgPool, jobs: wheelwork_jobs::Jobs<wheelwork_jobs::Postgres>)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use wheelwork_jobs::NewJob;
///
/// let mut transaction = pool.begin().await?;
/// sqlx::query("INSERT INTO orders (item) VALUES ('a book')").execute(&mut *transaction).await?;
/// jobs.schedule_in(&mut transaction, &NewJob::new("mail", &"anna")?).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// ```no_run
/// # #[cfg(feature = "diesel-async")]
/// # async fn order(mut connection: diesel_async::AsyncPgConnection,
/// #     jobs: wheelwork_jobs::Jobs<wheelwork_jobs::Postgres>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use diesel_async::{AsyncConnection, RunQueryDsl};
/// use wheelwork_jobs::NewJob;
///
/// type Failed = Box<dyn std::error::Error + Send + Sync>;
/// connection.transaction(async |connection| {
///     diesel::sql_query("INSERT INTO orders (item) VALUES ('a book')").execute(connection).await?;
///     jobs.schedule_in(&mut *connection, &NewJob::new("mail", &"anna")?).await?;
///     Ok::<_, Failed>(())
/// }).await?;
/// # Ok(())
/// # }
/// ```
///
/// The trait is sealed.
#[allow(private_bounds)] // it is sealed
pub trait Transaction<S: Store>: Transact<S> + Send {}

impl<S: Store, T: Transact<S>> Transaction<S> for T {}

/// What a store does in a transaction of the user's.
pub(crate) trait Transact<S>: Send {
    /// Stores a job without a claim. `None` if it is stored now. If it is due within the window, the nodes are told
    /// after the commit, by this call or by [`Calls::tend`].
    fn insert(self, store: &S, window: Duration, job: &NewJob) -> impl Answer<Option<Insertion>>;

    /// Ends a run if its claim still holds: moves the job to its next occurrence, keeps it as one that is done, or
    /// deletes it. If the job moves, the nodes are told as by [`insert`](Self::insert), in `Redb` at the end of the
    /// run.
    fn complete(
        self,
        store: &S,
        window: Duration,
        claim: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> impl Answer<bool>;
}

/// The store failed to do something. If the connection was lost meanwhile, it may have been done anyway.
#[derive(Debug, thiserror::Error)]
#[error("the store failed to {action}: {source}")]
pub struct StoreError {
    action: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
    done: Done,
}

/// What the store has done when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Nothing,
    /// The connection was lost, and a new one may do.
    Lost,
    Unknown,
}

impl StoreError {
    /// An error that says what was tried: "claim jobs".
    pub(crate) fn new(
        action: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { action, source: source.into(), done: Done::Unknown }
    }

    /// The error of one of the jobs whose common call has failed, as sure of what is done.
    pub(crate) fn of_one(error: &Arc<Self>) -> Self {
        Self { done: error.done, ..Self::new("store a job", error.clone()) }
    }

    /// The same error, if the store is sure that it has done nothing.
    pub(crate) fn undone(self) -> Self {
        Self { done: Done::Nothing, ..self }
    }

    /// The same error, if the call has done something before it.
    #[cfg(feature = "postgres")]
    pub(crate) fn not_undone(self) -> Self {
        if self.is_undone() { Self { done: Done::Unknown, ..self } } else { self }
    }

    /// The same error, if the connection to the database was lost, and a new one may do.
    pub(crate) fn lost(self) -> Self {
        Self { done: Done::Lost, ..self }
    }

    /// The error of a job whose key was not free in time.
    pub(crate) fn busy() -> Self {
        let busy = "an open transaction holds its key, or what it was refused for has just ended";
        Self::new("store a job", busy).undone()
    }

    /// Whether the store is sure that it has done nothing. If not, the caller does not know.
    pub fn is_undone(&self) -> bool {
        self.done == Done::Nothing
    }

    /// Whether the connection to the database was lost, so that the call can be made again at once. It may have been
    /// done already.
    pub fn is_lost(&self) -> bool {
        self.done == Done::Lost
    }
}

/// A call in a transaction of the user's. The box hides the type of the transaction from the compiler,
/// which otherwise cannot prove that a handler's future is `Send`.
pub(crate) type InTransaction<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The number of a node. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) i64);

/// A claim on a job: it holds while the job's row has this epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Claim {
    /// The job.
    pub(crate) id: JobId,
    /// The epoch that the claim gave to its row.
    pub(crate) epoch: u64,
}

/// A claim that a node wants to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// The claim.
    pub(crate) claim: Claim,
    /// Whether the handler was called.
    pub(crate) called: bool,
}

/// A new node.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// Its number.
    pub(crate) node: NodeId,
    /// What it has taken from its predecessor.
    pub(crate) kept: Vec<Claim>,
    /// The clock.
    pub(crate) clock: Reading,
}

/// What a node finds when it prolongs its life.
#[derive(Clone, Debug)]
pub(crate) struct Beat {
    /// False if the others have taken the node for dead: it owns nothing any more.
    pub(crate) alive: bool,
    /// The clock.
    pub(crate) clock: Reading,
    /// When the life of another node ends, unless that prolongs it.
    pub(crate) next_lapse: Option<Timestamp>,
    /// When the first free job is due of those of the given kinds that are not paused.
    pub(crate) next_due: Option<Timestamp>,
    /// Those of the given kinds that are paused.
    pub(crate) paused: Vec<String>,
    /// Claims of the node that were revoked, and that it has not acknowledged.
    pub(crate) revoked: Vec<Claim>,
    /// Whether the period of a unique job is over whose mark is still there.
    pub(crate) marks_over: bool,
}

/// A job to store.
#[derive(Clone, Debug)]
pub(crate) struct Insert {
    /// The job.
    pub(crate) job: NewJob,
    /// Whether the node may claim it.
    pub(crate) claim: bool,
}

/// What has become of a job that was to be stored.
#[derive(Debug)]
pub(crate) enum Insertion {
    /// It is stored now.
    Stored(Inserted),
    /// It was stored before, and nothing was changed.
    AlreadyStored,
    /// It is unique for a period, and this one was stored in the period. Nothing was changed.
    Existing(JobId),
    /// Another job has its key.
    KeyTaken,
    /// An open transaction holds its key or its id, or what it was refused for has just ended. Nothing was done: try
    /// again later.
    Busy,
    /// The store has failed, or cannot hold it. The error says whether it may be stored, and claimed.
    Refused(StoreError),
}

impl Insertion {
    /// The error, if nobody knows whether the job is stored.
    pub(crate) fn unknown(&self) -> Option<&StoreError> {
        match self {
            Self::Refused(error) if !error.is_undone() => Some(error),
            _ => None,
        }
    }

    /// The job, if it is stored now.
    pub(crate) fn stored(&self) -> Option<Inserted> {
        match self {
            Self::Stored(inserted) => Some(*inserted),
            _ => None,
        }
    }
}

/// A job that was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inserted {
    /// When it is due.
    pub(crate) due: Timestamp,
    /// The epoch of the claim, if it was claimed in the same step.
    pub(crate) claimed: Option<u64>,
}

/// A job that was claimed.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    /// The job and the epoch.
    pub(crate) claim: Claim,
    /// The kind of job.
    pub(crate) kind: Arc<str>,
    /// Its unique key.
    pub(crate) key: Option<Box<str>>,
    /// When it is due.
    pub(crate) due: Timestamp,
    /// The payload as JSON.
    pub(crate) payload: String,
    /// How urgent it is.
    pub(crate) priority: u8,
    /// How many attempts have failed.
    pub(crate) attempts: u32,
    /// How often this attempt was claimed, with this claim. A store for one process may say 1 always.
    pub(crate) claims: u32,
}

/// What holds for a kind over all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindLimits {
    /// The most claims at once.
    pub(crate) concurrency: Option<usize>,
    /// The most claims in a period.
    pub(crate) rate: Option<Rate>,
}

/// The answer to a claim of a kind that is limited over all nodes.
#[derive(Debug, Default)]
pub(crate) struct ClaimedLimited {
    /// The jobs.
    pub(crate) claimed: Vec<Claimed>,
    /// Another node is claiming jobs of the kind just now: nothing was done.
    pub(crate) busy: bool,
    /// When there can be more for this node, if it is not told before: a job is due, or the rate allows it.
    pub(crate) next: Option<Timestamp>,
}

/// A run that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// The claim, which still holds.
    pub(crate) claim: Claim,
    /// How many runs of this attempt were counted, with this one. 0 if they could not be counted now.
    pub(crate) starts: u32,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Whose run it was.
    pub(crate) claim: Claim,
    /// How it ended.
    pub(crate) outcome: Outcome,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The job is done, and is deleted.
    Done,
    /// The job is done, and is kept for a while.
    Keep(Kept),
    /// It runs again after the delay. The attempt counts as failed.
    Retry {
        /// From now.
        delay: Duration,
        /// Why it failed.
        error: String,
    },
    /// It runs again after the delay. The attempt does not count.
    Snooze {
        /// From now.
        delay: Duration,
    },
    /// It runs again at a time, with new attempts: a periodic job.
    Repeat {
        /// The next occurrence.
        due: Timestamp,
        /// Why this occurrence was given up. `None` if it was done.
        error: Option<String>,
        /// Whether the handler was called.
        ran: bool,
    },
    /// It is dead. The attempt counts as failed.
    Bury {
        /// Why it failed.
        error: String,
    },
    /// It has not begun, and is free again.
    LetGo,
    /// It has not begun: it is the last job of a group, and these have not ended, as far as its node knows. It is
    /// free again when they have. A store may let a node look before.
    Wait {
        /// These.
        members: Members,
        /// When its node has looked.
        at: Timestamp,
    },
}

/// How a job is kept that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// For how long, from now.
    pub(crate) lasts: Duration,
    /// The result of its run as JSON in ASCII.
    pub(crate) result: Option<String>,
}

/// What has become of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// The claim held, and the end is stored.
    Held,
    /// The claim does not hold any more: nothing was done. The same end may have been stored by a call that failed.
    Lost,
    /// The end could not be stored: somebody has locked the row, for example. Tell it again later.
    Later,
}

/// A job that was deleted or moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    /// The owner that it had, and the epoch of the owner's claim.
    pub(crate) owner: Option<(NodeId, u64)>,
    /// The claim was revoked: until the owner has acknowledged it, or has ended, it may begin to run the job.
    pub(crate) revoked: bool,
}

/// A job that was cancelled.
#[derive(Clone, Debug)]
pub(crate) struct Cancelled {
    /// Its kind.
    pub(crate) kind: Arc<str>,
    /// The claim that it had.
    pub(crate) removed: Removed,
}

/// What has become of a job that was to replace another one.
#[derive(Debug)]
pub(crate) struct Replaced {
    /// What has become of it. Never that the key is taken.
    pub(crate) insertion: Insertion,
    /// The job that it has replaced.
    pub(crate) before: Option<(JobId, Removed)>,
}

/// What the database tells a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A job is free, and due within the window.
    Look,
    /// From now on, notices may get lost.
    Lost,
    /// From now on, every notice comes. Earlier ones may be lost.
    Listening,
    /// A claim of the node holds no more.
    Drop(NodeId, Claim),
    /// A kind was paused or resumed.
    Paused,
    /// A clock that stands still was moved.
    Clock,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this kind only.
    pub kind: Option<String>,
    /// Only dead ones, or only those that are not dead.
    pub dead: Option<bool>,
    /// The most jobs to return; 0 means 100.
    pub limit: usize,
    /// Only those behind a job that is due then and has this id: the last one of the previous page.
    pub after: Option<(std::time::SystemTime, JobId)>,
}

impl Filter {
    #[cfg(any(feature = "redb", feature = "postgres"))]
    fn at_most(&self) -> usize {
        if self.limit == 0 { 100 } else { self.limit }
    }

    #[cfg(feature = "redb")]
    fn is_behind(&self, due: Timestamp, id: JobId) -> bool {
        self.after.is_none_or(|(after, last)| (due, id) > (after.into(), last))
    }
}

/// Which jobs to look at, at a cost that has a limit.
#[derive(Clone, Debug)]
pub struct Peek {
    /// Of this kind only. It must be given for waiting jobs.
    pub kind: Option<String>,
    /// `Waiting`: the earliest first. `Dead`: the latest due time first (`Redb`: those that were stored last first), and
    /// `Done`: those that were done last first, among the last [`MOST_READ`](Self::MOST_READ) of all kinds. Claimed
    /// jobs cannot be looked at in this way.
    pub state: State,
    /// How many jobs to skip, at most [`MOST_READ`](Self::MOST_READ).
    pub skip: usize,
    /// The most jobs to return.
    pub most: usize,
}

impl Peek {
    /// The most jobs that are read.
    pub const MOST_READ: usize = 10_000;

    /// The same within the limits.
    pub(crate) fn bounded(self) -> Self {
        let skip = self.skip.min(Self::MOST_READ);
        Self { skip, most: self.most.min(Self::MOST_READ - skip), ..self }
    }
}

/// The number of jobs of one kind. A kind that is paused may have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindStats {
    /// The kind.
    pub kind: String,
    /// Jobs that no node has claimed.
    pub waiting: u64,
    /// Those of them that are overdue.
    pub overdue: u64,
    /// Jobs that a node has claimed.
    pub claimed: u64,
    /// Jobs whose attempts are used up.
    pub dead: u64,
    /// Whether the kind is [paused](crate::Jobs::pause).
    pub paused: bool,
    /// When the first job of the kind is due that is not dead. In `Redb`, last jobs that wait for their group are left
    /// out.
    pub next_due: Option<std::time::SystemTime>,
}
