//! Connections: how one is made, and one that is made again when it has failed.
//!
//! A statement ends in one of three ways:
//!
//! - **answered**: the server did it, or says that it did not. The connection is used again.
//! - **broken**: the connection ended meanwhile. It is not known what the server did.
//! - **given up**: no answer came within the limit, or the caller did not wait for it. The server is asked
//!   to cancel the statement, and the connection is closed. It is not known what the server did.
//!
//! The server's own limits are shorter than that of the client. So a statement that waits for a lock ends
//! with an answer, and a node never has more backends than links.

use super::listen::Ears;
use super::place::place_of;
use super::prefix::Prefix;
use super::sql;
use crate::host::{self, JoinHandle, Runtime};
use crate::store::StoreError;
use crate::trace::tell;
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, MutexGuard};
#[cfg(test)]
use tokio_postgres::NoTls;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, CancelToken, Client, Config, Connection, Row, SimpleQueryMessage, Socket,
    Statement,
};
use tokio_util::sync::CancellationToken;

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Connecting = Later<Result<Session, tokio_postgres::Error>>;

/// How long the server has to cancel a statement that was given up.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);

/// Makes connections. The ears hear its notifications.
#[derive(Clone)]
pub(crate) struct Connector {
    connect: Arc<dyn Fn(Option<Arc<Ears>>) -> Connecting + Send + Sync>,
    cancel: Arc<dyn Fn(CancelToken) -> Later<()> + Send + Sync>,
    /// The processes of the server that serve the connections.
    backends: Arc<Lock<HashSet<i32>>>,
    /// Of the names of the tables.
    pub(super) prefix: Prefix,
    /// Where the database is, for errors.
    place: Arc<str>,
}

impl Connector {
    pub(super) fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let place = place_of(&config).into();
        let cancel_tls = tls.clone();
        let connect = move |ears: Option<Arc<Ears>>| -> Connecting {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await?;
                Ok(Session::new(client, connection, ears))
            })
        };
        let cancel = move |token: CancelToken| -> Later<()> {
            let tls = cancel_tls.clone();
            Box::pin(async move {
                let _ = token.cancel_query(tls).await; // the statement may have ended meanwhile
            })
        };
        let (backends, prefix) = (Arc::default(), Prefix::default());
        Self { connect: Arc::new(connect), cancel: Arc::new(cancel), backends, prefix, place }
    }

    /// Makes connections over streams to a simulated server.
    #[cfg(test)]
    pub(crate) fn through<S, F>(dial: impl Fn() -> F + Clone + Send + Sync + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = S> + Send,
    {
        let mut config = Config::new();
        config.user("simulated");
        let cancel_dial = dial.clone();
        let connect = move |ears: Option<Arc<Ears>>| -> Connecting {
            let (config, dial) = (config.clone(), dial.clone());
            Box::pin(async move {
                let stream = dial().await;
                let (client, connection) = config.connect_raw(stream, NoTls).await?;
                Ok(Session::new(client, connection, ears))
            })
        };
        let cancel = move |token: CancelToken| -> Later<()> {
            let dial = cancel_dial.clone();
            Box::pin(async move {
                let stream = dial().await;
                let _ = token.cancel_query_raw(stream, NoTls).await;
            })
        };
        let (backends, prefix, place) = (Arc::default(), Prefix::default(), "simulated".into());
        Self { connect: Arc::new(connect), cancel: Arc::new(cancel), backends, prefix, place }
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
struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    cancel: CancelToken,
    driver: JoinHandle<()>,
    /// Where the driver runs.
    runtime: Runtime,
    ended: CancellationToken,
    backend: Option<Backend>,
}

impl Session {
    fn new<S, T>(client: Client, connection: Connection<S, T>, ears: Option<Arc<Ears>>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ended = CancellationToken::new();
        let driver = host::spawn(drive(connection, ears, ended.clone()));
        let (cancel, runtime) = (client.cancel_token(), Runtime::here());
        let statements = HashMap::new();
        Self { client, statements, cancel, driver, runtime, ended, backend: None }
    }
}

/// The process of the server. No two connections share one.
struct Backend {
    process: i32,
    all: Arc<Lock<HashSet<i32>>>,
}

impl Backend {
    /// `None` if another connection has this process already.
    fn new(process: i32, all: &Arc<Lock<HashSet<i32>>>) -> Option<Self> {
        let new = all.lock().unwrap_or_else(PoisonError::into_inner).insert(process);
        new.then(|| Self { process, all: all.clone() })
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.process);
    }
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
    ears: Option<Arc<Ears>>,
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
        Self { connector: connector.clone(), limits, ears: None, slot: Mutex::default() }
    }

    /// A link whose connection listens as well.
    pub(super) fn listening(connector: &Connector, limits: Limits, ears: Arc<Ears>) -> Self {
        Self { ears: Some(ears), ..Self::new(connector, limits) }
    }

    /// The connection, for one call of the store.
    pub(super) async fn call(&self, action: &'static str) -> Result<Call<'_>, StoreError> {
        let mut slot = self.slot.lock().await;
        let session = match slot.session.take().filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => {
                if let Some(closing) = &mut slot.closing {
                    let _ = closing.await; // its runtime may have ended
                    slot.closing = None;
                }
                let connecting = self.connect(action);
                let connected = match host::timeout(self.limits.call, connecting).await {
                    Some(connected) => connected.map_err(StoreError::undone)?,
                    None => return Err(no_answer(action, self.limits.call).undone()),
                };
                if std::mem::replace(&mut slot.was_connected, true) {
                    tell!(info, [action], "connected to the database again, to {action}");
                }
                connected
            }
        };
        let limit = self.limits.call;
        let connector = &self.connector;
        Ok(Call { action, limit, connector, slot, session: Some(session), unanswered: false })
    }

    /// Connects if there is no connection. Returns the token of its end.
    pub(super) async fn connected(
        &self,
        action: &'static str,
    ) -> Result<CancellationToken, StoreError> {
        let call = self.call(action).await?;
        Ok(call.session.as_ref().map(|session| session.ended.clone()).unwrap_or_default())
    }

    async fn connect(&self, action: &'static str) -> Result<Session, StoreError> {
        let failed = |error| StoreError::new(action, Described(error));
        let connected = (self.connector.connect)(self.ears.clone()).await;
        let mut session = connected.map_err(|error| {
            let place = &self.connector.place;
            StoreError::new(action, format!("{place}: {}", Described(error)))
        })?;
        let settings = format!("{}{}", self.limits.settings(), sql::CONNECTED);
        let answers = session.client.simple_query(&settings).await.map_err(failed)?;
        let process = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse().ok(),
            _ => None,
        });
        session.backend = process.and_then(|id| Backend::new(id, &self.connector.backends));
        if session.backend.is_none() {
            return Err(StoreError::new(action, SHARED));
        }
        if let Some(ears) = &self.ears {
            let channel = self.connector.prefix.apply(sql::CHANNEL);
            let rows = session.client.query_one(&*channel, &[]).await.map_err(failed)?;
            let channel: String = rows.try_get(0).map_err(failed)?;
            let listen = format!("LISTEN {channel}");
            session.client.batch_execute(&listen).await.map_err(failed)?;
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
    limit: Duration,
    connector: &'a Connector,
    slot: MutexGuard<'a, Slot>,
    /// `None` only in the drop.
    session: Option<Session>,
    /// A statement was sent, and there is no answer to it.
    unanswered: bool,
}

impl Call<'_> {
    /// Gives up after this time, if that is less than the limit of the link.
    pub(super) fn within(mut self, limit: Duration) -> Self {
        self.limit = self.limit.min(limit);
        self
    }

    /// Waits so long for the answer, which may be more than the limit of the link.
    pub(super) fn patient(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs a statement, which is a transaction of its own.
    pub(super) async fn query(
        &mut self,
        statement: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let (action, limit, prefix) = (self.action, self.limit, &self.connector.prefix);
        let Some(Session { client, statements, .. }) = &mut self.session else {
            return Err(StoreError::new(action, "the connection is closed").undone());
        };
        self.unanswered = true;
        let query = async {
            let prepared = match statements.get(statement) {
                Some(prepared) => prepared.clone(),
                None => {
                    let prepared = client.prepare(&prefix.apply(statement)).await?;
                    statements.insert(statement, prepared.clone());
                    prepared
                }
            };
            client.query(&prepared, parameters).await
        };
        let answer = host::timeout(limit, query).await;
        let Some(answer) = answer else { return Err(no_answer(action, limit)) };
        self.unanswered = client.is_closed();
        answer.map_err(|error| {
            statements.remove(statement); // its plan may be the cause
            let undone = is_undone(&error);
            let error = StoreError::new(action, Described(error));
            if undone { error.undone() } else { error }
        })
    }

    /// Runs statements without parameters and answers. After an error the connection is not used again.
    pub(super) async fn batch(&mut self, statements: &str) -> Result<(), StoreError> {
        let (action, limit) = (self.action, self.limit);
        let Some(session) = &mut self.session else {
            return Err(StoreError::new(action, "the connection is closed").undone());
        };
        self.unanswered = true;
        let run = session.client.batch_execute(statements);
        let Some(answer) = host::timeout(limit, run).await else {
            return Err(no_answer(action, limit));
        };
        answer.map_err(|error| StoreError::new(action, Described(error)))?;
        self.unanswered = false;
        Ok(())
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if !self.unanswered {
            self.slot.session = Some(session);
            return;
        }
        let cancelling = (self.connector.cancel)(session.cancel.clone());
        // A runtime that has ended drops this, and the connection has ended with it.
        let runtime = session.runtime.clone();
        self.slot.closing = Some(runtime.spawn(async move {
            let _ = host::timeout(CANCEL_LIMIT, cancelling).await;
            session.driver.abort();
            let _ = session.driver.await; // then the socket is closed
        }));
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

/// Whether a connection had ended before its statement was sent, or has ended since.
pub(super) fn is_closed(error: &StoreError) -> bool {
    let described: Option<&Described> = error.source.downcast_ref();
    described.is_some_and(|Described(error)| error.is_closed())
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
) -> Result<(), StoreError> {
    if is_locked(&error) || state_of(&error).is_none() {
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
#[derive(Debug)]
pub(super) struct Described(pub(super) tokio_postgres::Error);

impl std::fmt::Display for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)?;
        let cause = std::error::Error::source(&self.0);
        cause.map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Described {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
