//! The embedded store: one file of `redb`, for one process.
//!
//! - `tables`: the rows, and every change of them; `row`: how one is read
//! - `claims`: who has claimed what, in memory alone
//! - `groups`: the last jobs of groups that wait, in memory alone
//! - `done`: jobs that are done and kept
//! - `glance`: what an operator sees
//! - `clock`: the system's, or one that a test moves
//! - `create`: a new file, which has its name only when it is whole
//! - `turn`: who may write, and the transactions of users
//! - `writer`: the thread that writes, with one commit for all that waits
//!
//! No claim is written to the file: a process that ends has lost all its claims, and the file can have
//! only one process. So a claim costs no write.

mod claims;
mod clock;
mod create;
mod done;
mod glance;
mod groups;
mod row;
mod tables;
mod turn;
mod writer;

pub use self::turn::RedbTransaction;

use self::claims::Claims;
use self::clock::Clock;
use self::row::Row;
use self::tables::{Tables, View};
use self::turn::Turns;
use self::writer::Writer;
use super::{
    Beat, Calls, Cancelled, Claim, Claimed, ClaimedLimited, End, Filter, Finished, Insert,
    Inserted, Insertion, Joined, Keep, Kept, KindLimits, Most, NodeId, Notice, Outcome, Peek,
    Removed, Replaced, Result, Started, Store, StoreError, Transact,
};
use crate::job::{JobId, NewJob, Progress, State, StoredJob, When};
use crate::lock::lock;
use crate::store::Glance;
use crate::time::{Reading, Timestamp};
use ::redb::backends::InMemoryBackend;
use ::redb::{Database, ReadTransaction, ReadableDatabase};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::UnboundedSender;

/// Jobs in one file, for one process.
///
/// Each change is on the disk before its call returns: one thread writes, and one `fsync` is for all
/// changes that came while the previous one ran. After a crash the file is as the last commit left it.
///
/// Clones share the file. It is closed a few milliseconds after the drop of the last clone, also after
/// [`Jobs::stop`](crate::Jobs::stop). Until then, [`open`](Self::open) fails. To open jobs again in one process, as in a
/// test of a restart, keep a clone and pass it to the next `Jobs`.
///
/// A write transaction of yours keeps all other writes waiting, those of the jobs
/// too: keep it short, and await nothing of [`Jobs`](crate::Jobs) in it except
/// [`schedule_in`](crate::Jobs::schedule_in) and [`complete_in`](crate::Job::complete_in). Whatever waits
/// for it longer than the [limit](Self::with_limit) fails.
///
/// The clock of this store is the system's. After an error of the disk `redb` refuses all further
/// writes: open the file again, in a new process.
#[derive(Clone)]
pub struct Redb(Arc<Inner>);

struct Inner {
    database: Arc<Database>,
    shared: Arc<Shared>,
    turns: Turns,
    writer: Writer,
    /// What runs have reported, in memory alone: a process that ends has no runs.
    progress: Arc<Mutex<HashMap<Claim, Progress>>>,
}

/// What the thread that writes shares with the others.
#[derive(Default)]
struct Shared {
    clock: Clock,
    claims: Mutex<Claims>,
    listeners: Mutex<Vec<UnboundedSender<Notice>>>,
}

impl Shared {
    fn claims(&self) -> MutexGuard<'_, Claims> {
        lock(&self.claims)
    }

    fn tell(&self, notice: Notice) {
        lock(&self.listeners).retain(|listener| listener.send(notice).is_ok());
    }
}

impl Redb {
    /// Opens a file, or creates it. A process that is killed while it creates the file may leave another
    /// one beside it, whose name ends in `.new` and which can be deleted.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, is empty, is not a database, or is open elsewhere, in this process too.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let database = create::open_or_create(path.as_ref())
            .map_err(|error| StoreError::new("open the file", error))?;
        Self::with(Arc::new(database))
    }

    /// Keeps jobs in a database of yours, in tables whose names begin with `wheelwork_`. At most one
    /// `Redb` may be made from one database. Begin write transactions by [`begin_write`](Self::begin_write):
    /// `redb`'s own method blocks its thread until the one before it has ended.
    ///
    /// # Errors
    ///
    /// If the thread that writes cannot start.
    pub fn with(database: Arc<Database>) -> Result<Self, StoreError> {
        let (shared, turns) = (Arc::<Shared>::default(), Turns::new(Self::LIMIT));
        let writer = Writer::start(database.clone(), shared.clone(), turns.clone())
            .map_err(|error| StoreError::new("start its thread", error))?;
        Ok(Self(Arc::new(Inner { database, shared, turns, writer, progress: Arc::default() })))
    }

    /// Keeps jobs in memory: for tests. They are gone with the last clone.
    ///
    /// # Errors
    ///
    /// If the thread that writes cannot start.
    pub fn in_memory() -> Result<Self, StoreError> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new());
        let database = database.map_err(|error| StoreError::new("make it in memory", error))?;
        Self::with(Arc::new(database))
    }

    /// Gives the store a clock that stands still at a time, until [`Jobs::advance`](crate::Jobs::advance) moves it:
    /// for tests. Call it before the store is used. Holds for all clones. Limits of handlers and of calls, and
    /// the liveness, go by the real time.
    pub fn on_test_clock(self, start: SystemTime) -> Self {
        self.0.shared.clock.stand_still(start.into());
        self
    }

    /// What the clock of the store shows, to a microsecond.
    pub fn now(&self) -> SystemTime {
        self.0.shared.clock.now().into()
    }

    /// Moves a clock that stands still, and tells the nodes.
    pub(crate) fn set_clock(&self, to: Timestamp) {
        self.0.shared.clock.stand_still(to);
        self.0.shared.tell(Notice::Clock);
    }

    /// The default limit for the wait for a write transaction.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// How long a change waits for the end of another write transaction, before it fails without having
    /// done anything. The limit is there because a task that awaits a change of the jobs in its own transaction waits
    /// for itself. Holds
    /// for all clones.
    pub fn with_limit(self, limit: Duration) -> Self {
        self.0.turns.set_limit(limit);
        self
    }

    /// Begins a write transaction of yours, after the ones before it. Waits without blocking the thread, so
    /// that other tasks can await in theirs.
    ///
    /// ```
    /// # use wheelwork_jobs::{Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// let jobs = Jobs::open(store.clone()).await?;
    /// let transaction = store.begin_write().await?;
    /// let id = jobs.schedule_in(&transaction, &NewJob::new("mail", &17)?).await?;
    /// transaction.commit().await?;
    /// assert!(jobs.get(id).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If another write transaction is open for longer than the [limit](Self::with_limit), or after an
    /// error of the disk.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its time enabled. A blocking handler begins by
    /// `tokio::runtime::Handle::current().block_on(store.begin_write())`.
    pub async fn begin_write(&self) -> Result<RedbTransaction, StoreError> {
        let begun = self.0.turns.begin(&self.0.database).await;
        begun.map_err(|error| StoreError::new("begin a transaction", error).undone())
    }

    /// Begins a read transaction of yours: a snapshot.
    ///
    /// # Errors
    ///
    /// After an error of the disk.
    pub fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        let begun = self.0.database.begin_read();
        begun.map_err(|error| StoreError::new("begin a transaction", error).undone())
    }

    /// The first job that is not dead, and waits for no member of a group.
    pub(crate) async fn first(&self) -> Result<Option<StoredJob>> {
        self.read("find the next job", |view, shared| {
            let claims = shared.claims();
            Ok(view.first(&claims)?.map(|(id, row)| stored(id, row, &claims)))
        })
        .await
    }

    /// Reads a snapshot on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        look: impl FnOnce(&View, &Shared) -> Result<T, ::redb::Error> + Send + 'static,
    ) -> Result<T> {
        let (database, shared) = (self.0.database.clone(), self.0.shared.clone());
        let looked = tokio::task::spawn_blocking(move || look(&View::open(&database)?, &shared));
        match looked.await {
            Ok(result) => result.map_err(|error| StoreError::new(action, error)),
            Err(error) => Err(StoreError::new(action, error)),
        }
    }
}

fn due_of(when: When, now: Timestamp) -> Timestamp {
    match when {
        When::After(micros) => now.after(Duration::from_micros(micros)),
        When::At(due) => due,
    }
}

impl Transact<Redb> for &RedbTransaction {
    async fn insert(
        self,
        store: &Redb,
        window: Duration,
        job: &NewJob,
    ) -> Result<Option<Insertion>> {
        let shared = &*store.0.shared;
        let insert = || -> Result<_, ::redb::Error> {
            let (mut tables, mut claims) = (Tables::open(self)?, shared.claims());
            Writing::new(&mut tables, &mut claims, shared).insert(job, window, None)
        };
        let insertion = insert().map_err(|error| StoreError::new("store a job", error))?;
        // A look writes, so it waits for the end of the transaction.
        Ok(Some(insertion).filter(|insertion| insertion.stored().is_none()))
    }

    async fn complete(
        self,
        store: &Redb,
        _window: Duration,
        claim: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> Result<bool> {
        let complete = || -> Result<_, ::redb::Error> {
            let (mut tables, mut claims) = (Tables::open(self)?, store.0.shared.claims());
            // After a rollback, the row is where it was.
            let is_its_own =
                |row: &Row| claims.holds(claim) && claims.moved(claim) != Some(row.due);
            let Some(row) = tables.row(claim.id)?.filter(is_its_own) else { return Ok(false) };
            let mut at = Writing::new(&mut tables, &mut claims, &store.0.shared);
            match (next, kept) {
                (Some(due), _) => {
                    at.tables.replace(claim.id, &Row { due, attempts: 0, error: None, ..row })?;
                    // The nodes are told at the end of the run, which frees the claim.
                    at.claims.moves(claim.id, due);
                }
                (None, Some(kept)) => _ = at.tables.keep(claim.id, at.now, &kept)?,
                (None, None) => _ = at.tables.remove(claim.id)?,
            }
            at.free_groups(claim.id)?;
            Ok(true)
        };
        complete().map_err(|error| StoreError::new("complete a job", error))
    }
}

impl Store for Redb {
    const VERSION: u32 = tables::VERSION;

    async fn version(&self) -> Result<u32> {
        let begun = self.begin_read()?;
        View::version(&begun).map_err(|error| StoreError::new("look for its tables", error))
    }

    async fn prepare(&self) -> Result<()> {
        self.write("create its tables", |at| at.tables.migrate()).await
    }

    async fn clock(&self) -> Result<Reading> {
        Ok(self.0.shared.clock.reading())
    }
}

impl Calls for Redb {
    fn stands_still(&self) -> bool {
        self.0.shared.clock.stands_still()
    }

    async fn join(&self, old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> Result<Joined> {
        let (node, kept) = self.0.shared.claims().join(old, keep, liveness);
        Ok(Joined { node, kept, clock: self.0.shared.clock.reading() })
    }

    async fn leave(&self, node: NodeId) -> Result<()> {
        self.0.shared.claims().leave(node);
        self.tell().await
    }

    async fn tell(&self) -> Result<()> {
        self.0.shared.tell(Notice::Look);
        Ok(())
    }

    async fn beat(&self, node: NodeId, liveness: Duration, kinds: &[Arc<str>]) -> Result<Beat> {
        let revoked = self.0.shared.claims().beat(node, liveness);
        let (alive, revoked) = (revoked.is_some(), revoked.unwrap_or_default());
        let kinds = kinds.to_vec();
        let looked = self.read("look around", move |view, shared| {
            let claims = shared.claims();
            let mut first = None;
            let mut paused = view.paused()?;
            paused.retain(|paused| kinds.iter().any(|kind| **kind == **paused));
            for kind in kinds.iter().filter(|kind| !paused.iter().any(|p| **p == ***kind)) {
                first = first.into_iter().chain(view.first_free(kind, &claims)?).min();
            }
            Ok((first, paused, view.has_marks_over(shared.clock.now())?))
        });
        let (next_due, paused, marks_over) = looked.await?;
        let clock = self.0.shared.clock.reading();
        Ok(Beat { alive, clock, next_lapse: None, next_due, paused, revoked, marks_over })
    }

    async fn take_over(&self) -> Result<u64> {
        Ok(0) // all nodes are in this process
    }

    async fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> Result<Vec<Insertion>> {
        let jobs = jobs.to_vec();
        self.write("store jobs", move |at| {
            let insert =
                |Insert { job, claim }: &Insert| at.insert(job, window, node.filter(|_| *claim));
            jobs.iter().map(insert).collect()
        })
        .await
    }

    async fn claim(
        &self,
        node: NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>> {
        let rooms = rooms.to_vec();
        self.write("claim jobs", move |at| {
            let mut all = Vec::new();
            for (kind, room) in &rooms {
                if !at.tables.is_paused(kind)? {
                    at.claim(node, kind, at.now.after(window), *room, &mut all)?;
                }
            }
            Ok(all)
        })
        .await
    }

    async fn claim_limited(
        &self,
        node: NodeId,
        window: Duration,
        kind: &Arc<str>,
        room: usize,
        limits: KindLimits,
    ) -> Result<ClaimedLimited> {
        let kind = kind.clone();
        self.write("claim jobs of a limited kind", move |at| {
            let mut answer = ClaimedLimited::default();
            if at.tables.is_paused(&kind)? {
                return Ok(answer);
            }
            let now = at.now;
            let (allowed, _) = at.claims.allowed(&kind, limits, now);
            let room = room.min(allowed);
            at.claim(node, &kind, now, room, &mut answer.claimed)?;
            for job in &answer.claimed {
                at.claims.note_limited(&kind, job.claim, limits.rate);
            }
            answer.next = if answer.claimed.len() < room {
                let next = at.tables.free_after(&kind, now, at.claims)?;
                next.filter(|due| *due <= now.after(window))
            } else {
                at.claims.allowed(&kind, limits, now).1
            };
            Ok(answer)
        })
        .await
    }

    async fn holding(&self, node: NodeId, claims: &[Claim]) -> Result<Vec<Claim>> {
        let held = self.0.shared.claims();
        Ok(claims.iter().copied().filter(|&claim| held.holds_for(node, claim)).collect())
    }

    async fn start(&self, node: NodeId, claims: &[Claim]) -> Result<Vec<Started>> {
        let held = self.holding(node, claims).await?.into_iter();
        Ok(held.map(|claim| Started { claim, starts: 0 }).collect())
    }

    async fn finish(&self, ends: &[End]) -> Result<Vec<Finished>> {
        let ends = ends.to_vec();
        self.write("end jobs", move |at| {
            let finish = |end: End| {
                let id = end.claim.id;
                let held = at.finish(end)?;
                at.free_groups(id)?;
                Ok(if held { Finished::Held } else { Finished::Lost })
            };
            ends.into_iter().map(finish).collect()
        })
        .await
    }

    async fn cancel(&self, id: JobId, me: Option<NodeId>) -> Result<Option<Cancelled>> {
        self.write("cancel a job", move |at| {
            let Some(row) = at.tables.remove(id)? else { return Ok(None) };
            let removed = at.disown(id, me);
            at.free_groups(id)?;
            Ok(Some(Cancelled { kind: row.kind.into(), removed }))
        })
        .await
    }

    async fn reschedule(
        &self,
        id: JobId,
        when: When,
        window: Duration,
        dead: bool,
        from: Option<Timestamp>,
        me: Option<NodeId>,
    ) -> Result<Option<Removed>> {
        self.write("reschedule a job", move |at| {
            let is_so = |row: &Row| row.dead == dead && from.is_none_or(|from| row.due == from);
            let Some(mut row) = at.tables.row(id)?.filter(is_so) else { return Ok(None) };
            row.due = due_of(when, at.now);
            if dead {
                (row.dead, row.attempts) = (false, 0);
            }
            at.tables.replace(id, &row)?;
            let removed = at.disown(id, me);
            at.freed(&row.kind, row.due, id, window);
            Ok(Some(removed))
        })
        .await
    }

    async fn replace(
        &self,
        window: Duration,
        job: &NewJob,
        me: Option<NodeId>,
    ) -> Result<Replaced> {
        let job = NewJob { unique_for: None, ..job.clone() };
        self.write("replace a job", move |at| {
            let mut before = None;
            if at.tables.row(job.id)?.is_none()
                && let Some(id) = at.tables.find(job.key.as_deref())?
            {
                at.tables.remove(id)?;
                before = Some((id, at.disown(id, me)));
                at.free_groups(id)?;
            }
            Ok(Replaced { insertion: at.insert(&job, window, None)?, before })
        })
        .await
    }

    async fn revoked(&self, claims: &[(NodeId, Claim)]) -> Result<Vec<(NodeId, Claim)>> {
        let known = self.0.shared.claims();
        let is_revoked = |(node, claim): &&(NodeId, Claim)| known.is_revoked(*node, *claim);
        Ok(claims.iter().filter(is_revoked).copied().collect())
    }

    async fn acknowledge(&self, node: NodeId, claims: &[Claim]) -> Result<()> {
        self.0.shared.claims().acknowledge(node, claims);
        Ok(())
    }

    async fn prune(&self, kind: Option<&str>, before: Timestamp, most: usize) -> Result<usize> {
        let kind = kind.map(str::to_owned);
        self.write("prune dead jobs", move |at| {
            let old = at.tables.dead_before(kind.as_deref(), before, most)?;
            for &id in &old {
                at.tables.remove(id)?;
                at.free_groups(id)?;
            }
            Ok(old.len())
        })
        .await
    }

    async fn set_paused(&self, kind: &str, paused: bool) -> Result<bool> {
        let kind = kind.to_owned();
        let changed =
            self.write("pause or resume a kind", move |at| at.tables.set_paused(&kind, paused));
        let changed = changed.await?;
        if changed {
            self.0.shared.tell(Notice::Paused);
        }
        Ok(changed)
    }

    async fn stored(&self, ids: &[JobId]) -> Result<Vec<(JobId, bool)>> {
        let ids = ids.to_vec();
        self.read("look for jobs", move |view, _| {
            let mut stored = Vec::new();
            for id in ids {
                stored.extend(view.row(id)?.map(|row| (id, row.dead)));
            }
            Ok(stored)
        })
        .await
    }

    async fn report(&self, reports: &[(Claim, Progress)]) -> Result<()> {
        let claims = self.0.shared.claims();
        let mut progress = lock(&self.0.progress);
        progress.retain(|claim, _| claims.holds(*claim));
        let held = reports.iter().filter(|(claim, _)| claims.holds(*claim));
        progress.extend(held.cloned());
        Ok(())
    }

    async fn prune_done(&self, before: Timestamp, most: usize) -> Result<usize> {
        let prune = move |at: &mut Writing<'_, '_>| at.tables.forget_done(false, before, most);
        self.write("prune jobs that are done", prune).await
    }

    async fn forget_done(&self, most: usize) -> Result<usize> {
        let forget = move |at: &mut Writing<'_, '_>| at.tables.forget_done(true, at.now, most);
        self.write("forget jobs that are done", forget).await
    }

    async fn unmark(&self, most: usize) -> Result<usize> {
        self.write("forget that jobs are unique", move |at| at.tables.unmark(at.now, most)).await
    }

    async fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        let progress = self.0.progress.clone();
        self.read("read a job", move |view, shared| {
            let Some(row) = view.row(id)? else { return view.done.get(id.as_u128(), true) };
            let claims = shared.claims();
            let mut job = stored(id, row, &claims);
            job.progress = claims.of(id).and_then(|claim| lock(&progress).get(&claim).cloned());
            Ok(Some(job))
        })
        .await
    }

    async fn find(&self, key: &str) -> Result<Option<StoredJob>> {
        let key = key.to_owned();
        self.read("find a job", move |view, shared| {
            Ok(view.find(&key)?.map(|(id, row)| stored(id, row, &shared.claims())))
        })
        .await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<StoredJob>> {
        let filter = filter.clone();
        self.read("list jobs", move |view, shared| {
            let listed = view.list(&filter)?.into_iter();
            let claims = shared.claims();
            Ok(listed.map(|(id, row)| stored(id, row, &claims)).collect())
        })
        .await
    }

    async fn glance(&self, most: Most) -> Result<Glance> {
        self.read("count jobs", move |view, shared| view.glance(most, shared)).await
    }

    async fn peek(&self, peek: &Peek) -> Result<Vec<StoredJob>> {
        let peek = peek.clone();
        self.read("list jobs", move |view, shared| view.peek(&peek, shared)).await
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        let _ = notices.send(Notice::Listening); // the node may have stopped meanwhile
        lock(&self.0.shared.listeners).push(notices);
        std::future::pending().await
    }
}

/// What the thread that writes does to the tables, and to what is in memory.
struct Writing<'w, 't> {
    tables: &'w mut Tables<'t>,
    claims: &'w mut Claims,
    shared: &'w Shared,
    now: Timestamp,
}

impl<'w, 't> Writing<'w, 't> {
    fn new(tables: &'w mut Tables<'t>, claims: &'w mut Claims, shared: &'w Shared) -> Self {
        Self { tables, claims, shared, now: shared.clock.now() }
    }

    /// A job is free. Tells the nodes if it is due within the window: a look waits for this commit.
    fn freed(&mut self, kind: &str, due: Timestamp, id: JobId, window: Duration) {
        self.claims.freed(kind, due, id);
        if due <= self.now.after(window) {
            self.shared.tell(Notice::Look);
        }
    }

    /// Stores a job, which `node` claims if it is due within the window.
    fn insert(
        &mut self,
        job: &NewJob,
        window: Duration,
        node: Option<NodeId>,
    ) -> Result<Insertion, ::redb::Error> {
        let due = due_of(job.when, self.now);
        if let Some(refused) = self.tables.insert(job, due, self.now)? {
            return Ok(refused);
        }
        let node = node.filter(|_| due <= self.now.after(window));
        let claimed = match node {
            Some(node) if !self.tables.is_paused(&job.kind)? => self.claims.claim(node, job.id),
            _ => None,
        };
        if claimed.is_none() {
            // A job with this id may have ended in a transaction. Its run goes on, and does not end this one.
            self.claims.moves(job.id, due);
            self.freed(&job.kind, due, job.id, window);
        }
        Ok(Insertion::Stored(Inserted { due, claimed }))
    }

    /// Claims free jobs of a kind for a node, unless that has ended: those that are due and have a priority, then others
    /// up to a due time.
    fn claim(
        &mut self,
        node: NodeId,
        kind: &Arc<str>,
        horizon: Timestamp,
        room: usize,
        all: &mut Vec<Claimed>,
    ) -> Result<(), ::redb::Error> {
        if !self.claims.is_alive(node) {
            return Ok(()); // the cursor would move past jobs that stay free
        }
        let urgent = self.tables.urgent(kind, self.now, room, self.claims)?;
        self.claim_all(node, kind, &urgent, all)?;
        let others = self.tables.free(kind, horizon, room - urgent.len(), self.claims)?;
        self.claim_all(node, kind, &others, all)
    }

    fn claim_all(
        &mut self,
        node: NodeId,
        kind: &Arc<str>,
        free: &[(Timestamp, JobId)],
        all: &mut Vec<Claimed>,
    ) -> Result<(), ::redb::Error> {
        for &(due, id) in free {
            let Some(epoch) = self.claims.claim(node, id) else { return Ok(()) };
            let Some(row) = self.tables.row(id)? else { continue };
            let claim = Claim { id, epoch };
            let (Row { key, payload, priority, attempts, .. }, kind) = (row, kind.clone());
            let key = key.map(String::into_boxed_str);
            all.push(Claimed { claim, kind, key, due, payload, priority, attempts, claims: 1 });
        }
        Ok(())
    }

    /// Ends a run. False if its claim does not hold.
    fn finish(&mut self, End { claim, outcome }: End) -> Result<bool, ::redb::Error> {
        let Self { tables, claims, shared, now } = self;
        if !claims.release(claim) {
            return Ok(false);
        }
        let moved = claims.moved(claim);
        if matches!(outcome, Outcome::Done) && moved.is_none() {
            return Ok(tables.remove(claim.id)?.is_some());
        }
        let Some(mut row) = tables.row(claim.id)? else { return Ok(false) };
        let is_its_own = moved != Some(row.due);
        let error = match if is_its_own { outcome } else { Outcome::LetGo } {
            Outcome::Done => return Ok(tables.remove(claim.id)?.is_some()),
            Outcome::Keep(kept) => return tables.keep(claim.id, *now, &kept),
            Outcome::Repeat { due, error, .. } => {
                row = Row { due, attempts: 0, error, ..row };
                None
            }
            // Not before it was due: see `FAILED` of the other store.
            Outcome::Snooze { delay } => {
                row.due = now.after(delay).max(row.due);
                None
            }
            Outcome::Retry { delay, error } => {
                row.due = now.after(delay).max(row.due);
                Some(error)
            }
            Outcome::LetGo => {
                claims.freed(&row.kind, row.due, claim.id);
                shared.tell(Notice::Look);
                return Ok(is_its_own);
            }
            Outcome::Wait { members, .. } => {
                if !claims.groups.wait(claim.id, members, 0, |id| tables.is_dead(id))? {
                    claims.freed(&row.kind, row.due, claim.id);
                }
                return Ok(true);
            }
            Outcome::Bury { error } => {
                row.dead = true;
                Some(error)
            }
        };
        if error.is_some() {
            row.attempts = row.attempts.saturating_add(1);
            row.error = error;
        }
        tables.replace(claim.id, &row)?;
        claims.freed(&row.kind, row.due, claim.id);
        Ok(true)
    }

    /// A job may have ended. Makes those due that have waited for it, and wait no more.
    fn free_groups(&mut self, member: JobId) -> Result<(), ::redb::Error> {
        for id in self.claims.groups.ended(member, |id| self.tables.is_dead(id))? {
            let Some(mut row) = self.tables.row(id)? else { continue };
            self.claims.freed(&row.kind, row.due, id); // it stays there if a transaction is rolled back
            row.due = self.now;
            self.tables.replace(id, &row)?;
            self.freed(&row.kind, row.due, id, Duration::ZERO);
        }
        Ok(())
    }

    /// Ends the claim on a job, and tells its owner. Revokes it unless that is `me`.
    fn disown(&mut self, id: JobId, me: Option<NodeId>) -> Removed {
        self.claims.groups.forget(id);
        let owner = self.claims.disown(id);
        let Some((node, epoch)) = owner else { return Removed { owner: None, revoked: false } };
        let claim = Claim { id, epoch };
        let revoked = me != Some(node) && self.claims.revoke(node, claim);
        self.shared.tell(Notice::Drop(node, claim));
        Removed { owner, revoked }
    }
}

fn stored(id: JobId, row: Row, claims: &Claims) -> StoredJob {
    let state = match () {
        () if row.dead => State::Dead,
        () if claims.is_claimed(id) => State::Claimed,
        () => State::Waiting,
    };
    row.into_job(id, state)
}

impl std::fmt::Debug for Redb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redb").finish_non_exhaustive()
    }
}
