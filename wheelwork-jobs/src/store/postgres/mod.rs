//! The store that many nodes share: a PostgreSQL database.
//!
//! - `sql`: every statement
//! - `connect`: connections, which are made again after an error
//! - `listen`: what other nodes tell

mod connect;
mod listen;
mod sql;

use self::connect::{Call, Connector, Described, Link};
use super::{
    Beat, Claim, Claimed, End, Filter, InTransaction, Insert, Inserted, Insertion, Joined,
    KindStats, NodeId, Notice, Outcome, Removed, Store, StoreError,
};
use crate::job::{JobId, NewJob, State, StoredJob, When};
use crate::time::{Reading, Timestamp, micros_up};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row, Socket};
use uuid::Uuid;

/// Jobs in a PostgreSQL database, which many nodes share.
///
/// The tables are made at the first use, in the first schema of the search path; their names begin with
/// `wheelwork_`. A store has up to five connections, which are made when they are needed and again after
/// an error. Clones share them.
///
/// Notices between nodes need `LISTEN` and `NOTIFY`, so connect to the database itself and not to a pool
/// that shares connections between transactions.
#[derive(Clone)]
pub struct Postgres(Arc<Inner>);

struct Inner {
    connector: Connector,
    /// Life and claims of the node.
    node: Link,
    inserts: Link,
    ends: Link,
    /// Calls of users.
    calls: Link,
}

impl Postgres {
    /// A store in the database that a URL names: `postgres://user@host/database`, or `host=... user=...`.
    /// Connects without TLS, and not before [`Jobs`](crate::Jobs) is opened.
    ///
    /// # Errors
    ///
    /// If the URL cannot be read.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let config = url.parse::<Config>();
        let config = config.map_err(|error| StoreError::new("read its URL", Described(error)))?;
        Ok(Self::with(config, NoTls, Self::LIMIT))
    }

    /// The default limit for one call.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// A store with a configuration and a TLS connector of yours. A call of the database that has no
    /// answer within `limit` fails, and its connection is given up. Let `limit` be at most a third of the
    /// liveness.
    pub fn with<T>(mut config: Config, tls: T, limit: Duration) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        if config.get_application_name().is_none() {
            config.application_name("wheelwork-jobs");
        }
        let connector = Connector::new(config, tls);
        let link = || Link::new(connector.clone(), limit);
        let (node, inserts, ends, calls) = (link(), link(), link(), link());
        Self(Arc::new(Inner { connector, node, inserts, ends, calls }))
    }
}

impl Store for Postgres {
    type Transaction<'t> = tokio_postgres::Transaction<'t>;

    async fn prepare(&self) -> Result<(), StoreError> {
        // Nodes that create the tables at the same time can hinder each other: then they exist next time.
        let mut attempts = 5;
        loop {
            let mut call = self.0.node.call("create its tables").await?;
            let rows = call.query(sql::IS_PREPARED, &[]).await?;
            if one(&rows, "create its tables")?.get(0) {
                call.done();
                return Ok(());
            }
            match call.batch(sql::PREPARE).await {
                Ok(()) => {
                    call.done();
                    return Ok(());
                }
                Err(error) if attempts == 0 => return Err(error),
                Err(_) => attempts -= 1,
            }
        }
    }

    async fn clock(&self) -> Result<Reading, StoreError> {
        let mut call = self.0.node.call("read the clock").await?;
        call.query(sql::CLOCK, &[]).await?; // prepares the statement, and wakes the connection
        let asked = Instant::now();
        let rows = call.query(sql::CLOCK, &[]).await?;
        let answered = Instant::now();
        call.done();
        let shown = timestamp(one(&rows, "read the clock")?, 0);
        Ok(Reading { asked, shown, answered })
    }

    async fn join(
        &self,
        old: Option<NodeId>,
        keep: &[Claim],
        liveness: Duration,
    ) -> Result<Joined, StoreError> {
        let mut call = self.0.node.call("join the nodes").await?;
        call.batch(sql::BEGIN).await?;
        let asked = Instant::now();
        let rows = call.query(sql::NEW_NODE, &[&micros(liveness)]).await?;
        let answered = Instant::now();
        let row = one(&rows, "join the nodes")?;
        let node: i64 = row.get(0);
        let mut kept = Vec::new();
        if let Some(NodeId(old)) = old {
            let (ids, epochs) = columns(keep);
            call.query(sql::END_NODE, &[&old]).await?;
            let rows = call.query(sql::KEEP, &[&node, &old, &ids, &epochs]).await?;
            kept = rows.iter().map(claim).collect();
            free(&mut call, &[old]).await?;
        }
        call.batch(sql::COMMIT).await?;
        call.done();
        let clock = Reading { asked, shown: timestamp(row, 1), answered };
        Ok(Joined { node: NodeId(node), kept, clock })
    }

    async fn leave(&self, NodeId(node): NodeId) -> Result<(), StoreError> {
        let mut call = self.0.node.call("leave the nodes").await?;
        call.batch(sql::BEGIN).await?;
        call.query(sql::END_NODE, &[&node]).await?;
        free(&mut call, &[node]).await?;
        call.batch(sql::COMMIT).await?;
        call.done();
        Ok(())
    }

    async fn beat(
        &self,
        NodeId(node): NodeId,
        liveness: Duration,
        kinds: &[Arc<str>],
    ) -> Result<Beat, StoreError> {
        let mut call = self.0.node.call("keep the node alive").await?;
        let kinds: Vec<&str> = kinds.iter().map(|kind| &**kind).collect();
        let asked = Instant::now();
        let rows = call.query(sql::BEAT, &[&node, &micros(liveness), &kinds]).await?;
        let answered = Instant::now();
        call.done();
        let row = one(&rows, "keep the node alive")?;
        Ok(Beat {
            alive: row.get(0),
            next_lapse: row.get::<_, Option<SystemTime>>(1).map(Timestamp::from),
            next_due: row.get::<_, Option<SystemTime>>(2).map(Timestamp::from),
            clock: Reading { asked, shown: timestamp(row, 3), answered },
        })
    }

    async fn take_over(&self) -> Result<u64, StoreError> {
        let mut call = self.0.node.call("take over jobs").await?;
        call.batch(sql::BEGIN).await?;
        let ended = call.query(sql::END_LAPSED, &[]).await?;
        let ended: Vec<i64> = ended.iter().map(|row| row.get(0)).collect();
        let freed = if ended.is_empty() { 0 } else { free(&mut call, &ended).await? };
        call.batch(sql::COMMIT).await?;
        call.done();
        Ok(freed)
    }

    async fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> Result<Vec<Insertion>, StoreError> {
        let mut call = self.0.inserts.call("store jobs").await?;
        let node = node.map(|NodeId(node)| node);
        let columns = Columns::of(jobs.iter().map(|insert| &insert.job));
        let may_claim: Vec<bool> = jobs.iter().map(|insert| insert.claim).collect();
        let Columns { ids, kinds, keys, times, delays, payloads } = &columns;
        let window = micros(window);
        let parameters: Parameters<'_, 9> =
            [&node, &window, ids, kinds, keys, times, delays, payloads, &may_claim];
        let rows = call.query(sql::INSERT, &parameters).await?;
        let mut stored: HashMap<Uuid, Inserted> = rows.iter().map(inserted).collect();
        let refused: Vec<Uuid> =
            ids.iter().filter(|id| !stored.contains_key(id)).copied().collect();
        // A job that comes twice in one call is stored once, and the second is stored already.
        let mut known: HashSet<Uuid> = stored.keys().copied().collect();
        if !refused.is_empty() {
            let rows = call.query(sql::KNOWN, &[&refused]).await?;
            known.extend(rows.iter().map(|row| row.get::<_, Uuid>(0)));
        }
        call.done();
        let answer = |id: &Uuid| match stored.remove(id) {
            Some(inserted) => Insertion::Stored(inserted),
            None if known.contains(id) => Insertion::AlreadyStored,
            None => Insertion::KeyTaken,
        };
        Ok(ids.iter().map(answer).collect())
    }

    async fn claim(
        &self,
        NodeId(node): NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut call = self.0.node.call("claim jobs").await?;
        let kinds: Vec<&str> = rooms.iter().map(|(kind, _)| &**kind).collect();
        let most = |&(_, room): &(_, usize)| i64::try_from(room).unwrap_or(i64::MAX);
        let most: Vec<i64> = rooms.iter().map(most).collect();
        let rows = call.query(sql::CLAIM, &[&node, &micros(window), &kinds, &most]).await?;
        call.done();
        let claimed = rows.iter().map(|row| Claimed {
            claim: claim(row),
            kind: row.get::<_, &str>(2).into(),
            due: timestamp(row, 3),
            payload: row.get(4),
            attempts: attempts(row, 5),
        });
        Ok(claimed.collect())
    }

    async fn finish(&self, ends: &[End]) -> Result<Vec<bool>, StoreError> {
        let mut call = self.0.ends.call("end jobs").await?;
        let (mut done, mut failed, mut delays, mut errors) = (vec![], vec![], vec![], vec![]);
        for End { claim, outcome } in ends {
            match outcome {
                Outcome::Done => done.push(*claim),
                Outcome::Retry { delay, error } => {
                    failed.push(*claim);
                    delays.push(Some(micros(*delay)));
                    errors.push(error.as_str());
                }
                Outcome::Bury { error } => {
                    failed.push(*claim);
                    delays.push(None);
                    errors.push(error.as_str());
                }
            }
        }
        let mut held = HashSet::new();
        if !done.is_empty() {
            let (ids, epochs) = columns(&done);
            held.extend(call.query(sql::DONE, &[&ids, &epochs]).await?.iter().map(claim));
        }
        if !failed.is_empty() {
            let (ids, epochs) = columns(&failed);
            let rows = call.query(sql::FAILED, &[&ids, &epochs, &delays, &errors]).await?;
            held.extend(rows.iter().map(claim));
        }
        call.done();
        Ok(ends.iter().map(|end| held.contains(&end.claim)).collect())
    }

    async fn cancel(&self, id: JobId) -> Result<Option<Removed>, StoreError> {
        let mut call = self.0.calls.call("cancel a job").await?;
        let rows = call.query(sql::CANCEL, &[&uuid(id)]).await?;
        call.done();
        Ok(rows.first().map(removed))
    }

    async fn reschedule(
        &self,
        id: JobId,
        when: When,
        window: Duration,
        dead: bool,
    ) -> Result<Option<Removed>, StoreError> {
        let mut call = self.0.calls.call("reschedule a job").await?;
        let (time, delay) = time_or_delay(when);
        let (id, window) = (uuid(id), micros(window));
        let parameters: Parameters<'_, 5> = [&id, &time, &delay, &window, &dead];
        let rows = call.query(sql::RESCHEDULE, &parameters).await?;
        call.done();
        Ok(rows.first().map(removed))
    }

    fn insert_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        window: Duration,
        job: &'a NewJob,
    ) -> InTransaction<'a, Result<Insertion, StoreError>> {
        Box::pin(async move {
            let Columns { ids, kinds, keys, times, delays, payloads } = Columns::of([job]);
            let (node, claim, window) = (None::<i64>, vec![false], micros(window));
            let parameters: Parameters<'_, 9> =
                [&node, &window, &ids, &kinds, &keys, &times, &delays, &payloads, &claim];
            let failed = |error| StoreError::new("store a job", Described(error));
            let rows = transaction.query(sql::INSERT, &parameters).await.map_err(failed)?;
            if let Some(row) = rows.first() {
                return Ok(Insertion::Stored(inserted(row).1));
            }
            let known = transaction.query(sql::KNOWN, &[&ids]).await.map_err(failed)?;
            Ok(if known.is_empty() { Insertion::KeyTaken } else { Insertion::AlreadyStored })
        })
    }

    fn complete_in<'a>(
        &'a self,
        transaction: &'a Self::Transaction<'_>,
        Claim { id, epoch }: Claim,
    ) -> InTransaction<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (id, epoch) = (uuid(id), epoch.cast_signed());
            let deleted = transaction.execute(sql::COMPLETE, &[&id, &epoch]).await;
            let failed = |error| StoreError::new("complete a job", Described(error));
            Ok(deleted.map_err(failed)? > 0)
        })
    }

    async fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let mut call = self.0.calls.call("read a job").await?;
        let rows = call.query(sql::GET, &[&uuid(id)]).await?;
        call.done();
        Ok(rows.first().map(stored))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<StoredJob>, StoreError> {
        let mut call = self.0.calls.call("list jobs").await?;
        let most = i64::try_from(filter.at_most()).unwrap_or(i64::MAX);
        let rows = call.query(sql::LIST, &[&filter.kind, &filter.dead, &most]).await?;
        call.done();
        Ok(rows.iter().map(stored).collect())
    }

    async fn stats(&self) -> Result<Vec<KindStats>, StoreError> {
        let mut call = self.0.calls.call("count jobs").await?;
        let rows = call.query(sql::STATS, &[]).await?;
        call.done();
        let count = |row: &Row, column| row.get::<_, i64>(column).unsigned_abs();
        let stats = rows.iter().map(|row| KindStats {
            kind: row.get(0),
            waiting: count(row, 1),
            overdue: count(row, 2),
            claimed: count(row, 3),
            dead: count(row, 4),
            next_due: row.get(5),
        });
        Ok(stats.collect())
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        listen::run(&self.0.connector, notices).await;
    }
}

/// Frees what ended nodes own, and tells the others. Returns how many jobs that was.
async fn free(call: &mut Call<'_>, ended: &[i64]) -> Result<u64, StoreError> {
    let rows = call.query(sql::FREE, &[&ended]).await?;
    call.query(sql::FORGET, &[&ended]).await?;
    call.query(sql::TELL, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

type Parameters<'a, const N: usize> = [&'a (dyn ToSql + Sync); N];

/// The parameters of an insertion.
struct Columns<'a> {
    ids: Vec<Uuid>,
    kinds: Vec<&'a str>,
    keys: Vec<Option<&'a str>>,
    times: Vec<Option<SystemTime>>,
    delays: Vec<Option<i64>>,
    payloads: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(jobs: impl IntoIterator<Item = &'a NewJob>) -> Self {
        let mut columns = Self {
            ids: vec![],
            kinds: vec![],
            keys: vec![],
            times: vec![],
            delays: vec![],
            payloads: vec![],
        };
        for job in jobs {
            let (time, delay) = time_or_delay(job.when);
            columns.ids.push(uuid(job.id));
            columns.kinds.push(&job.kind);
            columns.keys.push(job.key.as_deref());
            columns.times.push(time);
            columns.delays.push(delay);
            columns.payloads.push(&job.payload);
        }
        columns
    }
}

fn columns(claims: &[Claim]) -> (Vec<Uuid>, Vec<i64>) {
    claims.iter().map(|claim| (uuid(claim.id), claim.epoch.cast_signed())).unzip()
}

fn time_or_delay(when: When) -> (Option<SystemTime>, Option<i64>) {
    match when {
        When::At(due) => (Some(due.into()), None),
        When::After(micros) => (None, Some(signed(micros))),
    }
}

/// Microseconds, at most some 5,000 years: the database can add them to now.
fn micros(duration: Duration) -> i64 {
    signed(micros_up(duration).min(When::LONGEST))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn uuid(id: JobId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

fn id(row: &Row, column: usize) -> JobId {
    JobId::from_u128(row.get::<_, Uuid>(column).as_u128())
}

fn timestamp(row: &Row, column: usize) -> Timestamp {
    row.get::<_, SystemTime>(column).into()
}

fn attempts(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX)
}

fn one<'a>(rows: &'a [Row], action: &'static str) -> Result<&'a Row, StoreError> {
    rows.first().ok_or_else(|| StoreError::new(action, "no row: expected one"))
}

/// The id and the epoch, in the first two columns.
fn claim(row: &Row) -> Claim {
    Claim { id: id(row, 0), epoch: row.get::<_, i64>(1).cast_unsigned() }
}

fn inserted(row: &Row) -> (Uuid, Inserted) {
    let claimed = row.get::<_, Option<i64>>(2).map(i64::cast_unsigned);
    (row.get(0), Inserted { due: timestamp(row, 1), claimed })
}

/// The owner and the epoch, in the first two columns.
fn removed(row: &Row) -> Removed {
    let epoch = row.get::<_, i64>(1).cast_unsigned();
    Removed { owner: row.get::<_, Option<i64>>(0).map(|node| (NodeId(node), epoch)) }
}

fn stored(row: &Row) -> StoredJob {
    let state = match (row.get(6), row.get(7)) {
        (true, _) => State::Dead,
        (false, true) => State::Claimed,
        (false, false) => State::Waiting,
    };
    StoredJob {
        id: id(row, 0),
        kind: row.get(1),
        key: row.get(2),
        due: row.get(3),
        payload: row.get(4),
        attempts: attempts(row, 5),
        state,
        error: row.get(8),
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}
