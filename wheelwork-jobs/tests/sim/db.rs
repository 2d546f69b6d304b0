//! The tables of the simulated database, with transactions and locks as PostgreSQL has them.
//!
//! What a transaction has changed, nobody else sees before its commit. A lock is held until the end of its
//! transaction. Who waits for a lock holds those that it has. Whoever waits in a circle for a second, fails.
//! Waiting is not in order: when a transaction ends, any of those who wait goes first.

use super::fault::Fault;
use super::net::Wire;
use super::world::{self, Process};
use crate::job::JobId;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

pub(super) type Tx = u64;

/// A row of `wheelwork_revoked`: the node, the job and the epoch.
pub(super) type Revoked = (i64, u128, i64);

/// A row of `wheelwork_jobs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobRow {
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) due: Timestamp,
    pub(crate) payload: String,
    pub(crate) priority: i64,
    pub(crate) owner: Option<i64>,
    pub(crate) epoch: i64,
    pub(crate) attempts: i64,
    pub(crate) claims: i64,
    pub(crate) limited: bool,
    pub(crate) starts: i64,
    pub(crate) dead: bool,
    pub(crate) error: Option<String>,
}

/// A row of `wheelwork_kinds`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KindRow {
    pub(super) paused: bool,
    pub(super) turn: u64,
    pub(super) spent: Timestamp,
}

/// A row of `wheelwork_unique`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MarkRow {
    pub(super) job: u128,
    pub(super) until: Timestamp,
}

/// A row of `wheelwork_nodes`. Its place in the table is the number that it began with: an ended node has
/// the negative one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeRow {
    pub(super) id: i64,
    pub(super) expires: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lock {
    Job(u128),
    Node(i64),
    /// What a change under way holds of the unique indexes: who only locks a row has none of these.
    Id(u128),
    Key(String),
    KindName(String),
    Kind(String),
    /// The mark of a job that is unique for a period.
    Mark(String),
    Revoked(Revoked),
}

/// The strengths of row locks, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// `FOR KEY SHARE`
    KeyShare,
    /// An update that changes no key.
    NoKeyUpdate,
    /// `FOR UPDATE`, a deletion, or an update of a key.
    Update,
}

impl Mode {
    fn agrees_with(self, other: Self) -> bool {
        self.min(other) == Self::KeyShare && self.max(other) != Self::Update
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) jobs: BTreeMap<u128, JobRow>,
    pub(super) nodes: BTreeMap<i64, NodeRow>,
    pub(super) kinds: BTreeMap<String, KindRow>,
    pub(super) marks: BTreeMap<String, MarkRow>,
    pub(super) revoked: BTreeSet<Revoked>,
    last_node: i64,
    last_tx: Tx,
    transactions: BTreeMap<Tx, Changes>,
    committed: BTreeSet<Tx>,
    locks: BTreeMap<Lock, BTreeMap<Tx, Mode>>,
    waits: BTreeMap<Tx, BTreeSet<Tx>>,
    /// Work that handlers have committed in their transactions.
    pub(super) effects: BTreeMap<i64, usize>,
    /// When jobs of limited kinds were claimed.
    pub(super) limited_claims: Vec<(String, Timestamp)>,
    listeners: BTreeMap<u64, mpsc::UnboundedSender<String>>,
    /// How far the clock was set forward and back.
    clock_forward: Duration,
    clock_back: Duration,
    backends: BTreeMap<u64, (Wire, Arc<Notify>)>,
    last_backend: u64,
    /// The most that a statement takes.
    pub(super) slow: Duration,
    /// Connections are refused.
    pub(super) down: bool,
    /// Connections that are made now take no writes, as long as they last.
    pub(super) read_only: bool,
}

/// What a transaction has done.
#[derive(Default)]
pub(super) struct Changes {
    jobs: BTreeMap<u128, Option<JobRow>>,
    nodes: BTreeMap<i64, Option<NodeRow>>,
    kinds: BTreeMap<String, KindRow>,
    marks: BTreeMap<String, Option<MarkRow>>,
    /// Whether each is there from now on.
    revoked: BTreeMap<Revoked, bool>,
    notices: BTreeSet<String>,
    effects: Vec<i64>,
    limited_claims: Vec<(String, Timestamp)>,
}

/// Clones are the same database.
#[derive(Clone)]
pub(super) struct Db(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// A transaction has ended.
    ended: Notify,
    began: Instant,
}

/// What the clock shows at first, in microseconds since 1970.
const START: u64 = 1_800_000_000_000_000;

const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(1);

impl Db {
    /// Backends run in this process.
    pub(super) const PROCESS: Process = Process(1);

    pub(super) fn new() -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { state, ended: Notify::new(), began: world::now() }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> Timestamp {
        let State { clock_forward, clock_back, .. } = *self.state();
        let passed = world::now() - self.0.began + clock_forward;
        Timestamp::from_micros(START).after(passed).before(clock_back)
    }

    pub(super) fn jump(&self, by: Duration, back: bool) {
        let mut state = self.state();
        if back { state.clock_back += by } else { state.clock_forward += by }
    }

    pub(super) fn begin(&self) -> Transaction {
        let mut state = self.state();
        state.last_tx += 1;
        let tx = state.last_tx;
        state.transactions.insert(tx, Changes::default());
        Transaction { db: self.clone(), tx }
    }

    /// As after a crash: all that is not committed is gone.
    pub(super) fn crash(&self) {
        world::kill(Self::PROCESS);
        let mut state = self.state();
        let open: Vec<_> = state.transactions.keys().copied().collect();
        open.iter().for_each(|tx| state.end(*tx));
        state.listeners.clear();
        drop(state);
        self.0.ended.notify_waiters();
    }

    pub(super) fn holds(&self, tx: Tx, lock: &Lock) -> bool {
        self.state().locks.get(lock).is_some_and(|holders| holders.contains_key(&tx))
    }

    /// Gives up a lock before the end of its transaction.
    pub(super) fn unlock(&self, tx: Tx, lock: &Lock) {
        if let Some(holders) = self.state().locks.get_mut(lock) {
            holders.remove(&tx);
        }
        self.0.ended.notify_waiters();
    }

    fn end(&self, tx: Tx) {
        self.state().end(tx);
        self.0.ended.notify_waiters();
    }

    /// Locks, after everybody who has a lock that does not agree.
    pub(super) async fn lock(
        &self,
        tx: Tx,
        lock: &Lock,
        mode: Mode,
        limit: Option<Duration>,
    ) -> Result<(), Fault> {
        let began = world::now();
        loop {
            let ended = self.0.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            if self.state().try_lock(tx, lock, mode)? {
                return Ok(());
            }
            let _waiting = self.wait(tx, lock, mode);
            let waited = world::now() - began;
            if limit.is_some_and(|limit| waited >= limit) {
                return Err(Fault::LockTimeout);
            }
            if waited >= DEADLOCK_TIMEOUT && self.state().waits_in_a_circle(tx) {
                return Err(Fault::Deadlock);
            }
            let next = if waited < DEADLOCK_TIMEOUT { DEADLOCK_TIMEOUT } else { Duration::MAX };
            match next.min(limit.unwrap_or(Duration::MAX)) {
                Duration::MAX => ended.await,
                until => _ = world::within(until - waited, ended).await,
            }
        }
    }

    fn wait(&self, tx: Tx, lock: &Lock, mode: Mode) -> Waiting<'_> {
        let mut state = self.state();
        let for_whom = state.against(tx, lock, mode);
        state.waits.insert(tx, for_whom);
        Waiting { db: self, tx }
    }

    pub(super) fn listen(&self) -> (u64, mpsc::UnboundedReceiver<String>) {
        let (sender, notices) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.last_backend += 1;
        let number = state.last_backend;
        state.listeners.insert(number, sender);
        (number, notices)
    }

    pub(super) fn unlisten(&self, number: u64) {
        self.state().listeners.remove(&number);
    }

    pub(super) fn backend(&self, of: Wire) -> Backend {
        let mut state = self.state();
        state.last_backend += 1;
        let number = state.last_backend;
        let cancelled = Arc::new(Notify::new());
        state.backends.insert(number, (of, cancelled.clone()));
        Backend { db: self.clone(), number, cancelled }
    }

    /// Cancels the statement that a backend carries out now.
    pub(super) fn cancel(&self, backend: u64) {
        if let Some((_, cancelled)) = self.state().backends.get(&backend) {
            cancelled.notify_waiters();
        }
    }
}

struct Waiting<'a> {
    db: &'a Db,
    tx: Tx,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.db.state().waits.remove(&self.tx);
    }
}

/// A backend that exists.
pub(super) struct Backend {
    db: Db,
    pub(super) number: u64,
    cancelled: Arc<Notify>,
}

impl Backend {
    /// Waits until somebody cancels the statement.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.db.state().backends.remove(&self.number);
    }
}

/// An open transaction. Its drop rolls it back.
pub(super) struct Transaction {
    db: Db,
    pub(super) tx: Tx,
}

impl Transaction {
    pub(super) fn commit(self) -> Result<(), Fault> {
        self.db.state().commit(self.tx)
    }

    /// After an error, nothing of it is left, though it is open.
    pub(super) fn abort(&self) {
        self.db.end(self.tx);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.db.end(self.tx);
    }
}

impl State {
    fn against(&self, tx: Tx, lock: &Lock, mode: Mode) -> BTreeSet<Tx> {
        let holders = self.locks.get(lock).into_iter().flatten();
        let against = holders.filter(|&(&other, &held)| other != tx && !held.agrees_with(mode));
        against.map(|(&other, _)| other).collect()
    }

    /// False if somebody has a lock that does not agree.
    pub(super) fn try_lock(&mut self, tx: Tx, lock: &Lock, mode: Mode) -> Result<bool, Fault> {
        if !self.transactions.contains_key(&tx) {
            return Err(Fault::Aborted);
        }
        if !self.against(tx, lock, mode).is_empty() {
            return Ok(false);
        }
        let held = self.locks.entry(lock.clone()).or_default().entry(tx).or_insert(mode);
        *held = mode.max(*held);
        Ok(true)
    }

    fn waits_in_a_circle(&self, tx: Tx) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![tx]);
        while let Some(waiting) = next.pop() {
            for &other in self.waits.get(&waiting).into_iter().flatten() {
                if other == tx {
                    return true;
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        false
    }

    fn commit(&mut self, tx: Tx) -> Result<(), Fault> {
        let changes = self.transactions.get_mut(&tx).map(std::mem::take).ok_or(Fault::Aborted)?;
        for (id, row) in changes.jobs {
            match row {
                Some(row) => _ = self.jobs.insert(id, row),
                None => _ = self.jobs.remove(&id),
            }
        }
        for (number, row) in changes.nodes {
            match row {
                Some(row) => _ = self.nodes.insert(number, row),
                None => _ = self.nodes.remove(&number),
            }
        }
        self.kinds.extend(changes.kinds);
        for (mark, row) in changes.marks {
            match row {
                Some(row) => _ = self.marks.insert(mark, row),
                None => _ = self.marks.remove(&mark),
            }
        }
        for (claim, is_revoked) in changes.revoked {
            if is_revoked {
                self.revoked.insert(claim)
            } else {
                self.revoked.remove(&claim)
            };
        }
        self.limited_claims.extend(changes.limited_claims);
        for job in changes.effects {
            *self.effects.entry(job).or_default() += 1;
        }
        self.committed.insert(tx);
        for notice in changes.notices {
            self.listeners.retain(|_, listener| listener.send(notice.clone()).is_ok());
        }
        Ok(())
    }

    fn end(&mut self, tx: Tx) {
        self.transactions.remove(&tx);
        self.locks.retain(|_, holders| {
            holders.remove(&tx);
            !holders.is_empty()
        });
    }

    /// `None` while it is open.
    pub(super) fn has_committed(&self, tx: Tx) -> Option<bool> {
        let is_over = !self.transactions.contains_key(&tx) || self.committed.contains(&tx);
        is_over.then(|| self.committed.contains(&tx))
    }

    /// The next number of the sequence.
    pub(super) fn next_node(&mut self) -> i64 {
        self.last_node += 1;
        self.last_node
    }

    /// Work of a handler.
    pub(super) fn effect(&mut self, tx: Tx, number: i64) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.effects.push(number);
        }
    }

    /// The rows that a transaction sees.
    pub(super) fn jobs_for(&self, tx: Tx) -> BTreeMap<u128, &JobRow> {
        let mut rows: BTreeMap<_, _> = self.jobs.iter().map(|(id, row)| (*id, row)).collect();
        for (id, row) in self.transactions.get(&tx).into_iter().flat_map(|c| &c.jobs) {
            match row {
                Some(row) => _ = rows.insert(*id, row),
                None => _ = rows.remove(id),
            }
        }
        rows
    }

    pub(super) fn job(&self, tx: Tx, id: u128) -> Option<&JobRow> {
        let changed = self.transactions.get(&tx).and_then(|changes| changes.jobs.get(&id));
        changed.map_or_else(|| self.jobs.get(&id), Option::as_ref)
    }

    pub(super) fn set_job(&mut self, tx: Tx, id: u128, row: Option<JobRow>) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.jobs.insert(id, row);
        }
    }

    pub(super) fn nodes_for(&self, tx: Tx) -> BTreeMap<i64, NodeRow> {
        let mut rows = self.nodes.clone();
        for (number, row) in self.transactions.get(&tx).into_iter().flat_map(|c| &c.nodes) {
            match row {
                Some(row) => _ = rows.insert(*number, row.clone()),
                None => _ = rows.remove(number),
            }
        }
        rows
    }

    pub(super) fn set_node(&mut self, tx: Tx, number: i64, row: Option<NodeRow>) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.nodes.insert(number, row);
        }
    }

    pub(super) fn kind(&self, tx: Tx, kind: &str) -> Option<&KindRow> {
        let changed = self.transactions.get(&tx).and_then(|changes| changes.kinds.get(kind));
        changed.or_else(|| self.kinds.get(kind))
    }

    pub(super) fn set_kind(&mut self, tx: Tx, kind: &str, row: KindRow) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.kinds.insert(kind.to_owned(), row);
        }
    }

    pub(super) fn revoked_for(&self, tx: Tx) -> BTreeSet<Revoked> {
        let mut claims = self.revoked.clone();
        for (claim, is_revoked) in self.transactions.get(&tx).into_iter().flat_map(|c| &c.revoked) {
            if *is_revoked {
                claims.insert(*claim)
            } else {
                claims.remove(claim)
            };
        }
        claims
    }

    pub(super) fn set_revoked(&mut self, tx: Tx, claim: Revoked, is_revoked: bool) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.revoked.insert(claim, is_revoked);
        }
    }

    pub(super) fn marks_for(&self, tx: Tx) -> BTreeMap<String, MarkRow> {
        let mut rows = self.marks.clone();
        for (mark, row) in self.transactions.get(&tx).into_iter().flat_map(|c| &c.marks) {
            match row {
                Some(row) => _ = rows.insert(mark.clone(), *row),
                None => _ = rows.remove(mark),
            }
        }
        rows
    }

    pub(super) fn mark(&self, tx: Tx, mark: &str) -> Option<MarkRow> {
        let changed = self.transactions.get(&tx).and_then(|changes| changes.marks.get(mark));
        changed.copied().unwrap_or_else(|| self.marks.get(mark).copied())
    }

    pub(super) fn set_mark(&mut self, tx: Tx, mark: &str, row: Option<MarkRow>) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.marks.insert(mark.to_owned(), row);
        }
    }

    /// Notes that jobs of a limited kind are claimed.
    pub(super) fn note_limited(&mut self, tx: Tx, kind: &str, claims: usize, at: Timestamp) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.limited_claims.extend(std::iter::repeat_n((kind.to_owned(), at), claims));
        }
    }

    pub(super) fn notify(&mut self, tx: Tx, notice: String) {
        if let Some(changes) = self.transactions.get_mut(&tx) {
            changes.notices.insert(notice);
        }
    }

    /// Somebody who may only read says that the owner of a job has lost it. If the job is free, that the node which
    /// claims it next has lost it by then.
    pub(super) fn rumour(&mut self, id: u128) {
        let Some(&JobRow { owner, epoch, .. }) = self.jobs.get(&id) else { return };
        let claims: Vec<_> = match owner {
            Some(owner) => vec![(owner, epoch)],
            None => self.nodes.keys().map(|node| (*node, epoch + 1)).collect(),
        };
        for (owner, epoch) in claims {
            let notice = format!("drop {owner} {} {epoch}", JobId::from_u128(id));
            self.listeners.retain(|_, listener| listener.send(notice.clone()).is_ok());
        }
    }

    /// How many backends each process has. Of a half-open connection, the server does not know the end.
    pub(super) fn backends(&self) -> BTreeMap<Process, usize> {
        let mut counts = BTreeMap::new();
        for (wire, _) in self.backends.values().filter(|(wire, _)| !wire.is_silent()) {
            *counts.entry(wire.client()).or_default() += 1;
        }
        counts
    }
}
