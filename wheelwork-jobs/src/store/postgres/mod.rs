//! The store that many nodes share: a PostgreSQL database.
//!
//! - `schema`: the versions of the tables; `prefix`: their names; `sql`: every statement
//! - `connect`: connections, which are made again after an error
//! - `insert`: new jobs; `replace`: those that take the place of others
//! - `client`: jobs in transactions of users; `open`: the nodes are told after the commit
//! - `glance`: what an operator sees; `history`: jobs that are done;
//!   `progress`: how far runs are; `limited`: claims of kinds that are limited over all nodes
//! - `ends`: the beginnings and the ends of runs
//! - `nodes`: nodes that come and go
//! - `rows`: what the rows of answers say
//! - `listen`: what other nodes tell; `revoke`: claims that were taken away
//! - `url`: where the database is; `place`: the same in a word, for errors; `tls`: encrypted connections

mod client;
pub(crate) mod connect;
mod ends;
mod glance;
pub(crate) mod history;
mod insert;
mod limited;
mod listen;
mod nodes;
mod open;
mod place;
mod prefix;
pub(crate) mod progress;
mod replace;
mod revoke;
mod rows;
mod schema;
pub(crate) mod sql;
#[cfg(feature = "tls")]
mod tls;
mod url;

use self::connect::{Connector, Described, Limits, Link, Values, is_locked};
use self::listen::Ears;
use self::nodes::Moves;
use self::open::Open;
use self::prefix::Prefix;
use self::rows::{get, uuid};
use self::url::Target;
use super::{
    Beat, Calls, Cancelled, Claim, Claimed, ClaimedLimited, End, Filter, Finished, Insert,
    Insertion, Joined, Keep, KindLimits, Most, NodeId, Notice, Peek, Removed, Replaced, Result,
    Started, Store, StoreError,
};
use crate::host;
use crate::job::{JobId, NewJob, Progress, State, StoredJob, When};
use crate::store::Glance;
use crate::time::{Reading, Timestamp, micros_up};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Row, Socket};
use uuid::Uuid;

/// Jobs in a PostgreSQL database, which many nodes share.
///
/// The tables are made at the first use, in the first schema of the search path; their names begin with `wheelwork_`,
/// after a [prefix](Self::with_prefix) if you give one. Each [`Jobs`](crate::Jobs) has up to six connections, which are
/// made when they are needed and again after an error. It shares none with others on a clone of its store.
///
/// Notices between nodes need `LISTEN` and `NOTIFY`, so connect to the database itself and not to a pool
/// that shares connections between transactions.
#[derive(Clone)]
pub struct Postgres(Arc<Inner>);

struct Inner {
    connector: Connector,
    prefix: Prefix,
    /// Who hears what `life` listens to.
    ears: Arc<Ears>,
    /// Keeps the node alive, and listens.
    life: Link,
    /// Claims, and what belongs to nodes that come and go.
    node: Link,
    inserts: Link,
    ends: Link,
    /// Calls of users that change something.
    calls: Link,
    /// Calls of users that read.
    reads: Link,
    /// For one call.
    limit: Duration,
    moves: Moves,
    open: Open,
}

impl Postgres {
    /// A store in the database that a URL names: `postgres://user@host/database`, or `host=... user=...`.
    /// Does not connect before [`Jobs`](crate::Jobs) is opened.
    ///
    /// The connection is encrypted with `sslmode=require` (or `verify-ca`, `verify-full`) in the URL, which needs the
    /// feature `tls`. The server's certificate must fit its host name, and descend from one in the PEM file
    /// that `sslrootcert` names, or from one that the system trusts. All other modes go without encryption.
    ///
    /// # Errors
    ///
    /// If the URL or the certificates cannot be read.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        Self::at(Target::of_url(url))
    }

    /// The same, with the variables of the environment for what the URL does not say, as `psql` does: `PGHOST`,
    /// `PGPORT`, `PGDATABASE`, `PGUSER`, `PGPASSWORD`, `PGAPPNAME`, `PGOPTIONS`, `PGCONNECT_TIMEOUT`,
    /// `PGSSLMODE`, `PGSSLROOTCERT`, and for the password the file `~/.pgpass` or `PGPASSFILE`, if only its
    /// owner can read it. The URL may be empty.
    ///
    /// # Errors
    ///
    /// If the URL, a variable or the certificates cannot be read.
    pub fn from_environment(url: &str) -> Result<Self, StoreError> {
        Self::at(Target::of_environment(url, |name| std::env::var(name).ok()))
    }

    fn at(target: Result<Target, Box<dyn Error + Send + Sync>>) -> Result<Self> {
        let target = target.map_err(|error| StoreError::new("read its URL", error.to_string()))?;
        #[cfg(feature = "tls")]
        if target.needs_tls() {
            let rustls = tls::trusting(target.roots.as_deref());
            let rustls = rustls.map_err(|error| StoreError::new("read certificates", error))?;
            return Ok(Self::with(target.config, rustls, Self::LIMIT));
        }
        #[cfg(not(feature = "tls"))]
        if target.needs_tls() {
            let missing = "it needs the feature `tls` of wheelwork-jobs";
            return Err(StoreError::new("encrypt its connections", missing));
        }
        let mut config = target.config;
        config.ssl_mode(SslMode::Disable);
        Ok(Self::with(config, NoTls, Self::LIMIT))
    }

    /// The same database, with other tables: the names of all have `prefix` before `wheelwork_`. Jobs of one
    /// prefix know nothing of those of another, and their nodes are not woken by them. So a database can have
    /// several sets of jobs without several schemas.
    ///
    /// ```
    /// # use wheelwork_jobs::Postgres;
    /// let mail = Postgres::new("postgres://user@host/name")?.with_prefix("mail_")?; // mail_wheelwork_jobs
    /// # Ok::<(), wheelwork_jobs::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a name cannot begin with the prefix: expected 1 to 32 of `a` to `z`, `0` to `9` and `_`, the first not a
    /// digit.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, StoreError> {
        let mut connector = self.0.connector.clone();
        connector.prefix = Prefix::new(prefix)?;
        Ok(Self::over(&connector, self.0.limit))
    }

    /// The statements that make the tables, or bring tables of the version `from` to the version of this crate,
    /// for whoever runs migrations with their own tool. They can be run again. 0 means that there are no
    /// tables. `None` is no prefix.
    ///
    /// ```
    /// # use wheelwork_jobs::{Postgres, Store};
    /// let all = Postgres::schema(0, None)?;
    /// assert!(all.contains("CREATE TABLE IF NOT EXISTS wheelwork_jobs"));
    /// assert_eq!(Postgres::schema(Postgres::VERSION, None)?, "");
    /// # Ok::<(), wheelwork_jobs::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the prefix is no beginning of a name, as in [`with_prefix`](Self::with_prefix), or this crate does not know
    /// the version.
    pub fn schema(from: u32, prefix: Option<&str>) -> Result<String, StoreError> {
        if from > schema::VERSION {
            let unknown = format!("version {from}: expected 0 to {}", schema::VERSION);
            return Err(StoreError::new("write its statements", unknown));
        }
        let prefix = prefix.map(Prefix::new).transpose()?.unwrap_or_default();
        Ok(prefix.schema(from))
    }

    /// The default limit for one call.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// How long a statement of a node waits for a lock. Few wait for one at all.
    const PATIENCE: Duration = Duration::from_millis(250);

    /// How long a statement for a user waits for a key or a row that an open transaction holds. Others wait
    /// behind it.
    const KEY_PATIENCE: Duration = Duration::from_millis(50);

    /// A store with a configuration and a TLS connector of yours. A call of the database that has no
    /// answer within `limit` fails, and its connection is given up. Let `limit` be at most a third of the
    /// liveness. What `config` leaves open is set: connections lead to a server that takes writes, and are kept alive
    /// after 30 s, and a server has a quarter of `limit` to accept one.
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
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(limit / 4);
        }
        Self::over(&Connector::new(config, tls, limit), limit)
    }

    /// A store over connections that somebody else makes.
    pub(crate) fn over(connector: &Connector, limit: Duration) -> Self {
        let link = |lock| Link::new(connector, Limits { call: limit, lock });
        let mut life = link(Self::PATIENCE);
        let ears = Arc::<Ears>::default();
        life.ears = Some(ears.clone());
        Self(Arc::new(Inner {
            life,
            ears,
            prefix: connector.prefix.clone(),
            connector: connector.clone(),
            node: link(Self::PATIENCE),
            inserts: link(Self::KEY_PATIENCE),
            ends: link(Self::PATIENCE),
            calls: link(Self::KEY_PATIENCE),
            reads: link(Duration::ZERO),
            limit,
            moves: Moves::default(),
            open: Open::default(),
        }))
    }
}

impl Inner {
    /// Runs a statement of a user that changes one job. If somebody has locked the row, it is tried again
    /// until the limit for one call, and others have their turns meanwhile.
    async fn change(
        &self,
        action: &'static str,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>> {
        let begun = host::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self.calls.call(action).await?.query(statement, values).await;
            match answer {
                Err(error) if is_locked(&error) && host::elapsed(begun) < self.limit => {}
                answer => return answer,
            }
            host::sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

/// Between two attempts to change a row that somebody has locked.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The least time that a beat has for its answer.
const SHORTEST_BEAT: Duration = Duration::from_millis(500);

/// Before the connection that listens is made again.
const AFTER_END: Duration = Duration::from_millis(10);

/// The same, if it could not be made.
const AFTER_ERROR: Duration = Duration::from_millis(500);

impl Store for Postgres {
    const VERSION: u32 = schema::VERSION;

    async fn version(&self) -> Result<u32> {
        self.0.version().await
    }

    async fn prepare(&self) -> Result<()> {
        self.0.migrate().await
    }

    async fn clock(&self) -> Result<Reading> {
        let mut call = self.0.inserts.call("read the clock").await?;
        call.read(sql::CLOCK, &[]).await?; // prepares the statement, and wakes the connection
        let asked = host::now();
        let rows = call.query(sql::CLOCK, &[]).await?;
        let answered = host::now();
        let shown = rows::timestamp(rows::one(&rows)?, 0)?;
        Ok(Reading { asked, shown, answered })
    }
}

/// Calls that another file has.
macro_rules! elsewhere {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $name(&self, $($argument: $type),*) -> Result<$answer> {
            self.0.$name($($argument),*).await
        })*
    };
}

impl Calls for Postgres {
    elsewhere! {
        leave(node: NodeId) -> ();
        take_over() -> u64;
        insert(node: Option<NodeId>, window: Duration, jobs: &[Insert]) -> Vec<Insertion>;
        claim_limited(
            node: NodeId, window: Duration, kind: &Arc<str>, room: usize, limits: KindLimits
        ) -> ClaimedLimited;
        start(node: NodeId, claims: &[Claim]) -> Vec<Started>;
        finish(ends: &[End]) -> Vec<Finished>;
        replace(window: Duration, job: &NewJob, me: Option<NodeId>) -> Replaced;
        revoked(claims: &[(NodeId, Claim)]) -> Vec<(NodeId, Claim)>;
        report(reports: &[(Claim, Progress)]) -> ();
        glance(most: Most) -> Glance;
        peek(peek: &Peek) -> Vec<StoredJob>;
    }

    /// A connection lives on the runtime that has made it.
    fn apart(self) -> Self {
        Self::over(&self.0.connector, self.0.limit)
    }

    async fn join(&self, old: Option<NodeId>, keep: &[Keep], liveness: Duration) -> Result<Joined> {
        if old.is_none() {
            // What a node needs is opened here, so that it does not lack a connection later.
            for link in [&self.0.life, &self.0.inserts, &self.0.ends] {
                link.connected("join the nodes").await?;
            }
        }
        self.0.join(old.map(|NodeId(old)| old), keep, liveness).await
    }

    async fn tell(&self) -> Result<()> {
        self.0.ends.call("tell the nodes").await?.query(sql::TELL, &[]).await.map(drop)
    }

    async fn beat(
        &self,
        NodeId(node): NodeId,
        liveness: Duration,
        kinds: &[Arc<str>],
    ) -> Result<Beat> {
        let mut call = self.0.life.call("keep the node alive").await?;
        call.limit = call.limit.min((liveness / 3).max(SHORTEST_BEAT));
        let kinds: Vec<&str> = kinds.iter().map(|kind| &**kind).collect();
        let asked = host::now();
        let rows = call.query(sql::BEAT, &[&node, &micros(liveness), &kinds]).await?;
        let answered = host::now();
        let row = rows::one(&rows)?;
        let beat = Beat {
            alive: get(row, 0)?,
            next_lapse: rows::maybe_timestamp(row, 1)?,
            next_due: rows::maybe_timestamp(row, 2)?,
            clock: Reading { asked, shown: rows::timestamp(row, 3)?, answered },
            paused: get(row, 4)?,
            revoked: revoke::claims(&get::<Vec<&str>>(row, 5)?),
            marks_over: get(row, 6)?,
        };
        if let Err(error) = self.0.keep_left(&mut call, node, liveness).await {
            log::warn!("what is left to node {node} may be lost: {error}"); // the beat holds all the same
        }
        Ok(beat)
    }

    async fn claim(
        &self,
        NodeId(node): NodeId,
        window: Duration,
        rooms: &[(Arc<str>, usize)],
    ) -> Result<Vec<Claimed>> {
        let mut call = self.0.node.call("claim jobs").await?;
        let kinds: Vec<&str> = rooms.iter().map(|(kind, _)| &**kind).collect();
        let most: Vec<i64> = rooms.iter().map(|(_, room)| limit(*room)).collect();
        let rows = call.query(sql::CLAIM, &[&node, &micros(window), &kinds, &most]).await?;
        rows.iter().map(rows::claimed).collect()
    }

    async fn holding(&self, NodeId(node): NodeId, claims: &[Claim]) -> Result<Vec<Claim>> {
        let left = self.0.moves.left(node);
        let mut call = self.0.node.call("check claims").await?;
        let has = |claim, owner| owner == node || left.has(claim, owner);
        ends::held(&mut call, claims, has).await
    }

    async fn cancel(&self, id: JobId, me: Option<NodeId>) -> Result<Option<Cancelled>> {
        let me = me.map(|NodeId(me)| me);
        let rows = self.0.change("cancel a job", sql::CANCEL, &[&uuid(id), &me]).await?;
        rows.first().map(rows::cancelled).transpose()
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
        let (time, delay) = time_or_delay(when);
        let (id, window, me) = (uuid(id), micros(window), me.map(|NodeId(me)| me));
        let from = from.map(SystemTime::from);
        let values: Values<'_> = &[&id, &time, &delay, &window, &dead, &me, &from];
        let rows = self.0.change("reschedule a job", sql::RESCHEDULE, values).await?;
        rows.first().map(rows::removed).transpose()
    }

    async fn acknowledge(&self, NodeId(node): NodeId, claims: &[Claim]) -> Result<()> {
        let mut call = self.0.calls.call("acknowledge revoked claims").await?;
        let (ids, epochs) = columns(claims);
        call.query(sql::ACKNOWLEDGE, &[&node, &ids, &epochs]).await.map(drop)
    }

    async fn prune(&self, kind: Option<&str>, before: Timestamp, most: usize) -> Result<usize> {
        let values: Values<'_> = &[&kind, &SystemTime::from(before), &limit(most)];
        Ok(self.0.change("prune dead jobs", sql::PRUNE, values).await?.len())
    }

    async fn set_paused(&self, kind: &str, paused: bool) -> Result<bool> {
        let (action, statement) =
            if paused { ("pause a kind", sql::PAUSE) } else { ("resume a kind", sql::RESUME) };
        Ok(!self.0.change(action, statement, &[&kind]).await?.is_empty())
    }

    async fn stored(&self, ids: &[JobId]) -> Result<Vec<(JobId, bool)>> {
        let mut call = self.0.node.call("look for jobs").await?;
        let ids: Vec<Uuid> = ids.iter().copied().map(uuid).collect();
        let rows = call.read(sql::STORED, &[&ids]).await?;
        let stored = |row: &Row| {
            let id: Uuid = get(row, 0)?;
            Ok((JobId::from_u128(id.as_u128()), get(row, 1)?))
        };
        rows.iter().map(stored).collect()
    }

    async fn prune_done(&self, before: Timestamp, most: usize) -> Result<usize> {
        let values: Values<'_> = &[&SystemTime::from(before), &limit(most)];
        let prune = self.0.change("prune jobs that are done", history::PRUNE_DONE, values);
        Ok(prune.await?.len())
    }

    async fn forget_done(&self, most: usize) -> Result<usize> {
        let mut call = self.0.node.call("forget jobs that are done").await?;
        Ok(call.query(history::FORGET_DONE, &[&limit(most)]).await?.len())
    }

    async fn unmark(&self, most: usize) -> Result<usize> {
        let mut call = self.0.node.call("forget that jobs are unique").await?;
        Ok(call.query(sql::UNMARK, &[&limit(most)]).await?.len())
    }

    async fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        let mut call = self.0.reads.call("read a job").await?;
        let rows = call.read(sql::GET, &[&uuid(id)]).await?;
        let Some(row) = rows.first() else {
            let rows = call.read(history::GET_DONE, &[&uuid(id)]).await?;
            return rows.first().map(rows::done).transpose();
        };
        let mut job = rows::stored(row)?;
        if job.state == State::Claimed {
            job.progress = progress::of(&mut call, id).await?;
        }
        Ok(Some(job))
    }

    async fn find(&self, key: &str) -> Result<Option<StoredJob>> {
        let mut call = self.0.reads.call("find a job").await?;
        let rows = call.read(sql::FIND, &[&key]).await?;
        rows.first().map(rows::stored).transpose()
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<StoredJob>> {
        let mut call = self.0.reads.call("list jobs").await?;
        let most = limit(filter.at_most());
        // Within what the driver and the server know.
        let known = |due: SystemTime| SystemTime::from(Timestamp::from(due));
        let (due, id) = filter.after.map(|(due, id)| (known(due), uuid(id))).unzip();
        let rows = call.read(sql::LIST, &[&filter.kind, &filter.dead, &most, &due, &id]).await?;
        rows.iter().map(rows::stored).collect()
    }

    async fn tend(&self) {
        self.0.tell_of_commits().await;
    }

    async fn listen(&self, notices: UnboundedSender<Notice>) {
        let Inner { ears, life, .. } = &*self.0;
        ears.add(notices);
        loop {
            match life.connected("listen to the other nodes").await {
                Ok(ended) => {
                    ended.cancelled().await;
                    host::sleep(AFTER_END).await;
                }
                Err(error) => {
                    log::warn!("{error}");
                    host::sleep(AFTER_ERROR).await;
                }
            }
        }
    }
}

fn columns(claims: &[Claim]) -> (Vec<Uuid>, Vec<i64>) {
    claims.iter().map(|claim| (uuid(claim.id), claim.epoch.cast_signed())).unzip()
}

fn time_or_delay(when: When) -> (Option<SystemTime>, Option<i64>) {
    match when {
        When::At(due) => (Some(due.into()), None),
        When::After(delay) => (None, Some(micros(Duration::from_micros(delay)))),
    }
}

/// Microseconds, at most about 5,000 years: the database can add them to now.
fn micros(duration: Duration) -> i64 {
    micros_up(duration).min(When::LONGEST).cast_signed()
}

fn limit(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}
