//! Connections: how one is made, and one that is made again when it has failed.
//!
//! A statement ends in one of four ways:
//!
//! - **answered**: the server did it, or says that it did not. The connection is used again.
//! - **useless**: the server says that it did not, and would not do another one either: it takes no writes, for
//!   example. The connection is closed, and the statement is sent once more on a new one.
//! - **broken**: the connection ended meanwhile. It is not known what the server did. A statement that only reads is
//!   sent once more on a new one.
//! - **given up**: no answer came within the limit, or the caller did not wait for it. The server is asked
//!   to cancel the statement, and the connection is closed. It is not known what the server did.
//!
//! A connection can lead nowhere although nobody has ended it. One that was quiet is tried before its use: a firewall
//! may have forgotten it. If a server takes no writes, a failover has taken place. Then all connections are replaced
//! before their next use, by ones to a server that does: others would read old data.
//!
//! The server's own limits are shorter than that of the client. So a statement that waits for a lock ends
//! with an answer, and a node never has more backends than links.

use super::listen::Ears;
use super::place::place_of;
use super::prefix::Prefix;
use super::sql;
use crate::host::{self, JoinHandle, Runtime};
use crate::lock::lock;
use crate::store::{Result, StoreError};
use crate::trace::tell;
use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Lock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, CancelToken, Client, Config, Connection, Row, SimpleQueryMessage, Socket,
    Statement,
};
use tokio_util::sync::CancellationToken;

/// The values of a statement's parameters.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type Connecting = Later<Result<Session, tokio_postgres::Error>>;

/// How long the server has to cancel a statement that was given up.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);

/// A connection without an answer for this time is tried before its use.
const QUIET: Duration = Duration::from_secs(1);

/// How long the server has to answer then.
const TRIAL_LIMIT: Duration = Duration::from_millis(500);

/// Firewalls and balancers forget connections that are quiet for a few minutes.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Between two packets that keep a connection alive, if there is no answer to the first.
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(10);

/// That of `tokio_postgres`, which stands for none.
const NO_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// Makes connections. The ears hear its notifications.
#[derive(Clone)]
pub(crate) struct Connector {
    connect: Arc<dyn Fn(Option<Arc<Ears>>) -> Connecting + Send + Sync>,
    cancel: Arc<dyn Fn(CancelToken) -> Later<()> + Send + Sync>,
    /// The processes of the server that serve the connections.
    backends: Arc<Lock<HashMap<i32, CancellationToken>>>,
    /// How often a server was left because it takes no writes. Connections from before are not used.
    failovers: Arc<AtomicU64>,
    /// Of the names of the tables.
    pub(super) prefix: Prefix,
    /// Where the database is, for errors.
    place: Arc<str>,
}

impl Connector {
    /// Of several servers, each has a share of `limit` to serve a connection.
    pub(super) fn new<T>(mut config: Config, tls: T, limit: Duration) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        keep_alive(&mut config);
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // What a standby shows may be old, and what is read decides: a job that is not there yet counts as ended.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let place = place_of(&config).into();
        let cancel_tls = tls.clone();
        let servers: Arc<[Config]> = servers(&config).into();
        let connect = move |ears: Option<Arc<Ears>>| -> Connecting {
            let (mut servers, tls) = (servers.to_vec(), tls.clone());
            if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
                fastrand::shuffle(&mut servers);
            }
            let share = limit / servers.len() as u32;
            Box::pin(async move {
                // The last one has the rest of the time.
                let last = servers.pop().unwrap_or_default();
                for server in servers {
                    // One that accepts a connection may hang all the same.
                    let connected = host::timeout(share, server.connect(tls.clone())).await;
                    if let Some(Ok((client, connection))) = connected {
                        return Ok(Session::new(client, connection, ears));
                    }
                }
                let (client, connection) = last.connect(tls).await?;
                Ok(Session::new(client, connection, ears))
            })
        };
        let cancel = move |token: CancelToken| -> Later<()> {
            let tls = cancel_tls.clone();
            Box::pin(async move {
                let _ = token.cancel_query(tls).await; // the statement may have ended meanwhile
            })
        };
        Self::of(connect, cancel, place)
    }

    pub(crate) fn of(
        connect: impl Fn(Option<Arc<Ears>>) -> Connecting + Send + Sync + 'static,
        cancel: impl Fn(CancelToken) -> Later<()> + Send + Sync + 'static,
        place: Arc<str>,
    ) -> Self {
        let (connect, cancel) = (Arc::new(connect), Arc::new(cancel));
        let (backends, failovers, prefix) = Default::default();
        Self { connect, cancel, backends, failovers, prefix, place }
    }

    /// How often a server was left.
    fn failovers(&self) -> u64 {
        self.failovers.load(Ordering::Relaxed)
    }

    /// Leaves the server of a connection, if the error calls for that. The connection was made after `failovers`
    /// failovers.
    fn judge(&self, error: &tokio_postgres::Error, failovers: u64) {
        if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
            self.failovers.fetch_max(failovers + 1, Ordering::Relaxed);
        }
    }
}

/// A configuration for each server. `tokio_postgres` would wait for one of them for ever, and cannot be told to go on.
fn servers(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize| length == 0 || length == count;
    if count < 2
        || !(fits(hosts.len()) && fits(addresses.len()) && (ports.len() == 1 || fits(ports.len())))
    {
        return vec![config.clone()]; // an error says what does not fit
    }
    let server = |number| {
        let mut server = without_servers(config);
        match hosts.get(number) {
            Some(Host::Tcp(name)) => _ = server.host(name),
            #[cfg(unix)]
            Some(Host::Unix(path)) => _ = server.host_path(path),
            None => {}
        }
        addresses.get(number).map(|&address| server.hostaddr(address));
        let port = ports.get(number).or(ports.first().filter(|_| ports.len() == 1));
        port.map(|&port| server.port(port));
        server
    };
    (0..count).map(server).collect()
}

/// All of a configuration but where the servers are.
fn without_servers(config: &Config) -> Config {
    let mut copy = Config::new();
    config.get_user().map(|user| copy.user(user));
    config.get_password().map(|password| copy.password(password));
    config.get_dbname().map(|name| copy.dbname(name));
    config.get_options().map(|options| copy.options(options));
    config.get_application_name().map(|name| copy.application_name(name));
    config.get_connect_timeout().map(|&limit| copy.connect_timeout(limit));
    config.get_tcp_user_timeout().map(|&limit| copy.tcp_user_timeout(limit));
    config.get_keepalives_interval().map(|interval| copy.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| copy.keepalives_retries(retries));
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    copy
}

/// Keeps connections alive, unless the user has said how.
fn keep_alive(config: &mut Config) {
    if config.get_keepalives_idle() == NO_KEEPALIVE {
        config.keepalives_idle(KEEPALIVE);
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(KEEPALIVE_AGAIN);
        }
    }
}

/// Moves the bytes of a connection until it ends.
async fn drive<S, T>(
    mut connection: Connection<S, T>,
    ears: Option<Arc<Ears>>,
    ended: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let _ending = Ending { ended, ears: ears.clone() };
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                if let Some(ears) = &ears {
                    ears.hear(notification.payload());
                }
            }
            Ok(_) => {}
            Err(error) => {
                log::debug!("a connection has ended: {error}");
                return;
            }
        }
    }
}

/// Its drop tells that a connection has ended.
struct Ending {
    ended: CancellationToken,
    ears: Option<Arc<Ears>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.ended.cancel();
        if let Some(ears) = &self.ears {
            ears.lost();
        }
    }
}

/// An open connection.
pub(crate) struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    cancel: CancelToken,
    driver: JoinHandle<()>,
    /// Where the driver runs.
    runtime: Runtime,
    ended: CancellationToken,
    /// When the server has answered last.
    answered: Instant,
    /// How often a server had been left when it was made.
    failovers: u64,
}

impl Session {
    pub(crate) fn new<S, T>(
        client: Client,
        connection: Connection<S, T>,
        ears: Option<Arc<Ears>>,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ended = CancellationToken::new();
        let driver = host::spawn(drive(connection, ears, ended.clone()));
        let (cancel, runtime) = (client.cancel_token(), Runtime::here());
        let (statements, answered) = (HashMap::new(), host::now());
        Self { client, statements, cancel, driver, runtime, ended, answered, failovers: 0 }
    }

    /// Whether it can be used, as far as is known. One that was quiet is tried.
    async fn is_fit(&mut self, failovers: u64, limit: Duration) -> bool {
        if self.client.is_closed() || self.failovers < failovers {
            return false;
        }
        if host::elapsed(self.answered) < QUIET {
            return true;
        }
        let answer = host::timeout(TRIAL_LIMIT.min(limit), self.client.check_connection()).await;
        self.answered = host::now();
        matches!(answer, Some(Ok(())))
    }
}

/// Notes the process of the server that a connection has, until it has ended. False if another one has it: a pool of
/// sessions gives it to the next connection only when the last one has ended.
fn is_alone(
    backends: &Lock<HashMap<i32, CancellationToken>>,
    process: i32,
    ended: &CancellationToken,
) -> bool {
    let mut backends = lock(backends);
    backends.retain(|_, ended| !ended.is_cancelled());
    let is_alone = !backends.contains_key(&process);
    backends.entry(process).or_insert_with(|| ended.clone());
    is_alone
}

/// How long a statement may take.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Until the client gives it up.
    pub(super) call: Duration,
    /// For one lock. Zero waits as long as for the statement.
    pub(super) lock: Duration,
}

impl Limits {
    /// What the server allows: it answers before the client gives up.
    fn settings(self) -> String {
        let statement = self.call.mul_f64(0.8).as_millis().max(1);
        let lock = self.lock.as_millis();
        format!("SET statement_timeout = {statement}; SET lock_timeout = {lock};")
    }
}

/// A connection that is made when it is needed, and again when it has failed.
pub(super) struct Link {
    connector: Connector,
    limits: Limits,
    /// Who hears what the connection listens to, if it does.
    pub(super) ears: Option<Arc<Ears>>,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    /// Whether there was a connection before.
    was_connected: bool,
    session: Option<Session>,
    /// The end of the previous connection, which was given up.
    closing: Option<JoinHandle<()>>,
}

impl Link {
    pub(super) fn new(connector: &Connector, limits: Limits) -> Self {
        let (connector, slot) = (connector.clone(), Mutex::default());
        Self { connector, limits, ears: None, slot }
    }

    /// The connection, for one call of the store.
    pub(super) async fn call(&self, action: &'static str) -> Result<Call<'_>> {
        let mut slot = self.slot.lock().await;
        let (limit, session) = (self.limits.call, slot.session.take());
        let mut call = Call { action, limit, link: self, slot, session, leaving: Leaving::No };
        let is_fit = match &mut call.session {
            Some(session) => session.is_fit(self.connector.failovers(), limit).await,
            None => false,
        };
        if !is_fit {
            call.renew().await?;
        }
        Ok(call)
    }

    /// Connects if there is no connection. Returns the token of its end.
    pub(super) async fn connected(&self, action: &'static str) -> Result<CancellationToken> {
        let call = self.call(action).await?;
        Ok(call.session.as_ref().map(|session| session.ended.clone()).unwrap_or_default())
    }

    async fn connect(&self, action: &'static str) -> Result<Session> {
        let failed = |error| StoreError::new(action, Described(error));
        let failovers = self.connector.failovers();
        let connected = (self.connector.connect)(self.ears.clone()).await;
        let mut session = connected.map_err(|error| {
            let place = &self.connector.place;
            StoreError::new(action, format!("{place}: {}", Described(error)))
        })?;
        session.failovers = failovers;
        let settings = format!("{}{}", self.limits.settings(), sql::CONNECTED);
        let answers = session.client.simple_query(&settings).await.map_err(failed)?;
        let process = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse().ok(),
            _ => None,
        });
        let is_alone = |process| is_alone(&self.connector.backends, process, &session.ended);
        if !process.is_some_and(is_alone) {
            return Err(StoreError::new(action, SHARED));
        }
        if let Some(ears) = &self.ears {
            let channel = self.connector.prefix.apply(sql::CHANNEL);
            let rows = session.client.query_one(&*channel, &[]).await.map_err(failed)?;
            let channel: String = rows.try_get(0).map_err(failed)?;
            let listen = format!("LISTEN {channel}");
            session.client.batch_execute(&listen).await.map_err(|error| {
                self.connector.judge(&error, failovers);
                failed(error)
            })?;
            ears.listening(session.ended.clone());
        }
        Ok(session)
    }
}

/// A pool such as PgBouncer in its mode `transaction` mixes up what belongs to a connection.
const SHARED: &str = "two connections share one process of the server: expected the server itself, or a \
    pool that gives a connection to a session and not to a transaction";

/// One call of the store.
pub(super) struct Call<'a> {
    action: &'static str,
    /// How long it waits for an answer.
    pub(super) limit: Duration,
    link: &'a Link,
    slot: MutexGuard<'a, Slot>,
    /// `None` if it could not be made again, and in the drop.
    session: Option<Session>,
    leaving: Leaving,
}

/// What becomes of the connection at the end of the call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaving {
    /// It is used again.
    No,
    /// It is closed.
    Close,
    /// A statement was sent, and there is no answer to it. It is cancelled first.
    Cancel,
}

impl Call<'_> {
    /// Makes the connection again.
    async fn renew(&mut self) -> Result<()> {
        self.leave();
        if let Some(closing) = &mut self.slot.closing {
            let _ = closing.await; // its runtime may have ended
            self.slot.closing = None;
        }
        let (action, limit) = (self.action, self.link.limits.call);
        let connect = async {
            match self.link.connect(action).await {
                Err(error) if state_of(&error).is_some_and(is_useless) => {
                    log::info!("{error}");
                    self.link.connect(action).await
                }
                connected => connected,
            }
        };
        let session = match host::timeout(limit, connect).await {
            Some(connected) => connected.map_err(StoreError::undone)?,
            None => return Err(no_answer(action, limit).undone()),
        };
        if std::mem::replace(&mut self.slot.was_connected, true) {
            tell!(info, [action], "connected to the database again, to {action}");
        }
        self.session = Some(session);
        Ok(())
    }

    /// Closes the connection.
    fn leave(&mut self) {
        let Some(session) = self.session.take() else { return };
        let is_unanswered = std::mem::replace(&mut self.leaving, Leaving::No) == Leaving::Cancel;
        let cancel = &self.link.connector.cancel;
        let cancelling = is_unanswered.then(|| cancel(session.cancel.clone()));
        // A runtime that has ended drops this, and the connection has ended with it.
        let runtime = session.runtime.clone();
        self.slot.closing = Some(runtime.spawn(async move {
            if let Some(cancelling) = cancelling {
                let _ = host::timeout(CANCEL_LIMIT, cancelling).await;
            }
            session.driver.abort();
            let _ = session.driver.await; // then the socket is closed
        }));
    }

    /// Runs a statement, which is a transaction of its own. Sends it once more if the server has done nothing because
    /// the connection is useless.
    pub(super) async fn query(
        &mut self,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>> {
        match self.send(statement, values).await {
            // A pool that mixes connections up does so again.
            Err(error) if state_of(&error).is_some_and(is_useless) => {
                self.send_again(error, statement, values).await
            }
            answer => answer,
        }
    }

    /// The same for a statement that only reads. It is also sent once more if the connection has ended.
    pub(super) async fn read(
        &mut self,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>> {
        match self.query(statement, values).await {
            Err(error) if error.is_lost() => self.send_again(error, statement, values).await,
            answer => answer,
        }
    }

    async fn send_again(
        &mut self,
        first: StoreError,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>> {
        log::info!("{first}");
        self.renew().await?;
        self.send(statement, values).await
    }

    async fn send(&mut self, statement: &'static str, values: Values<'_>) -> Result<Vec<Row>> {
        let (action, limit, connector) = (self.action, self.limit, &self.link.connector);
        let Some(session) = &mut self.session else {
            return Err(StoreError::new(action, "the connection is closed").undone());
        };
        self.leaving = Leaving::Cancel;
        let Session { client, statements, answered, .. } = session;
        let query = async {
            let prepared = match statements.get(statement) {
                Some(prepared) => prepared.clone(),
                None => {
                    let prepared = client.prepare(&connector.prefix.apply(statement)).await?;
                    statements.insert(statement, prepared.clone());
                    prepared
                }
            };
            client.query(&prepared, values).await
        };
        let answer = host::timeout(limit, query).await;
        let Some(answer) = answer else { return Err(no_answer(action, limit)) };
        *answered = host::now();
        match answer {
            Ok(rows) => {
                self.leaving = Leaving::No;
                Ok(rows)
            }
            Err(error) => {
                statements.remove(statement); // its plan may be the cause
                Err(self.failed(error))
            }
        }
    }

    /// A statement has this error for its answer, or the end of the connection.
    fn failed(&mut self, error: tokio_postgres::Error) -> StoreError {
        let (state, session) = (error.code(), self.session.as_ref());
        self.leaving = match state {
            Some(state) if is_useless(state) => Leaving::Close,
            _ if session.is_some_and(|session| session.client.is_closed()) => Leaving::Cancel,
            _ => Leaving::No,
        };
        if let Some(session) = session {
            self.link.connector.judge(&error, session.failovers);
        }
        let (is_undone, is_lost) = (is_undone(&error), is_lost(&error));
        let failed = match state {
            Some(state) if is_mixed_up(state) => StoreError::new(self.action, SHARED),
            _ => StoreError::new(self.action, Described(error)),
        };
        match (is_undone, is_lost) {
            (true, _) => failed.undone(),
            (false, true) => failed.lost(),
            (false, false) => failed,
        }
    }

    /// Runs statements without parameters and answers. After an error the connection is not used again.
    pub(super) async fn batch(&mut self, statements: &str) -> Result<()> {
        let (action, limit) = (self.action, self.limit);
        let Some(session) = &mut self.session else {
            return Err(StoreError::new(action, "the connection is closed").undone());
        };
        self.leaving = Leaving::Cancel;
        let run = session.client.batch_execute(statements);
        let Some(answer) = host::timeout(limit, run).await else {
            return Err(no_answer(action, limit));
        };
        session.answered = host::now();
        self.leaving = Leaving::No;
        answer.map_err(|error| {
            let error = self.failed(error);
            self.leaving = Leaving::Cancel;
            error
        })
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.leaving == Leaving::No {
            self.slot.session = self.session.take();
        } else {
            self.leave();
        }
    }
}

fn no_answer(action: &'static str, limit: Duration) -> StoreError {
    StoreError::new(action, format!("no answer within {limit:?}"))
}

/// Whether the server says that it has done nothing. The end of a connection can come after a commit.
fn is_undone(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

/// What the server says of a statement that it has not done. `None` for all other errors.
pub(super) fn state_of(error: &StoreError) -> Option<&SqlState> {
    let Described(error) = error.source.downcast_ref()?;
    is_undone(error).then(|| error.code()).flatten()
}

/// Whether a connection is useless after a statement that was answered with this. Each statement is a separate
/// transaction, so an error about the state of a transaction is about the connection.
fn is_useless(state: &SqlState) -> bool {
    let ends = |class| state.code().starts_with(class); // connection, transaction, shutdown
    ["08", "25", "57P"].into_iter().any(ends) || is_mixed_up(state)
}

/// Whether a pool has given a statement to a server's process that does not know it, or knows another one by its name.
fn is_mixed_up(state: &SqlState) -> bool {
    [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT].contains(state)
}

/// Whether the connection has ended, before its statement was sent or since.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    let of_socket = error.source().is_some_and(|cause| cause.is::<io::Error>());
    error.is_closed() || of_socket || error.code().is_some_and(is_useless)
}

/// Whether an error is of the connection, and not of what was asked.
pub(super) fn is_of_connection(error: &StoreError) -> bool {
    state_of(error).is_none_or(is_useless)
}

/// Whether a statement has waited too long for what somebody else has locked.
pub(super) fn is_locked(error: &StoreError) -> bool {
    let locked = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    state_of(error).is_some_and(|state| locked.contains(state))
}

/// Has both halves tried that the server refused together. One row alone is left, and so will be told
/// later. Passes on an error that is none of the rows'.
pub(super) fn halve<'a, T>(
    part: &'a [T],
    error: StoreError,
    parts: &mut Vec<&'a [T]>,
) -> Result<()> {
    if is_locked(&error) || is_of_connection(&error) {
        return Err(error);
    }
    if part.len() == 1 {
        log::warn!("{error}");
    } else {
        let (first, second) = part.split_at(part.len() / 2);
        parts.extend([second, first]);
    }
    Ok(())
}

/// An error of `tokio_postgres` that prints its cause as well: "db error" alone says nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}{cause}", cause = .0.source().map_or(String::new(), |cause| format!(": {cause}")))]
pub(super) struct Described(#[source] pub(super) tokio_postgres::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_all_that_the_configuration_says() {
        let url = "postgres://u:p@a:1,b:2/d?options=-cx%3Dy&application_name=n&sslmode=require&sslnegotiation=direct\
            &connect_timeout=3&tcp_user_timeout=4&keepalives=1&keepalives_idle=5&keepalives_interval=6\
            &keepalives_retries=7&target_session_attrs=any&channel_binding=require&load_balance_hosts=random";
        let config: Config = url.parse().unwrap();
        let mut all = without_servers(&config);
        all.host("a").host("b").port(1).port(2);
        assert_eq!(all, config);
        let [first, second] = &servers(&config)[..] else { panic!("two servers") };
        assert_eq!((first.get_hosts(), first.get_ports()), (&config.get_hosts()[..1], &[1][..]));
        assert_eq!((second.get_hosts(), second.get_ports()), (&config.get_hosts()[1..], &[2][..]));
        let one_port: Config = "host=a,b port=3 user=u".parse().unwrap();
        assert!(servers(&one_port).iter().all(|server| server.get_ports() == [3]));
        let unfit: Config = "host=a,b port=1,2,3 user=u".parse().unwrap_or_default();
        assert_eq!(servers(&unfit), [unfit]);
    }
}
