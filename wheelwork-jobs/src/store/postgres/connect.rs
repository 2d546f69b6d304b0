//! Connections: how one is made, and one that is made again whenever it has failed.

use super::sql;
use crate::store::StoreError;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, Socket, Statement};

type Connecting = Pin<Box<dyn Future<Output = Result<Client, tokio_postgres::Error>> + Send>>;
type Payloads = mpsc::UnboundedSender<String>;

/// Makes connections. What a notification says goes to the sender.
#[derive(Clone)]
pub(super) struct Connector(Arc<dyn Fn(Option<Payloads>) -> Connecting + Send + Sync>);

impl Connector {
    pub(super) fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self(Arc::new(move |payloads| {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await?;
                tokio::spawn(drive(connection, payloads));
                client.batch_execute(sql::CONNECTED).await?;
                Ok(client)
            })
        }))
    }

    pub(super) async fn connect(
        &self,
        payloads: Option<Payloads>,
    ) -> Result<Client, tokio_postgres::Error> {
        (self.0)(payloads).await
    }
}

/// Moves the bytes of a connection until it ends.
async fn drive<S, T>(mut connection: Connection<S, T>, payloads: Option<Payloads>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                if let Some(payloads) = &payloads {
                    let _ = payloads.send(notification.payload().to_owned()); // nobody listens now
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

/// A connection that is made when it is needed, and again after any error.
pub(super) struct Link {
    connector: Connector,
    /// The longest time for one call.
    limit: Duration,
    session: Mutex<Option<Session>>,
}

struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Link {
    pub(super) fn new(connector: Connector, limit: Duration) -> Self {
        Self { connector, limit, session: Mutex::new(None) }
    }

    /// The connection, for one call of the store.
    pub(super) async fn call(&self, action: &'static str) -> Result<Call<'_>, StoreError> {
        let mut slot = self.session.lock().await;
        let session = match slot.take().filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => {
                let connecting = self.connector.connect(None);
                let client = within(self.limit, action, connecting).await?;
                Session { client, statements: HashMap::new() }
            }
        };
        Ok(Call { action, limit: self.limit, slot, session })
    }
}

/// One call of the store. Unless it is [`done`](Self::done), the connection is not used again: then
/// nobody finds a transaction that is half done, or the answer to another question.
pub(super) struct Call<'a> {
    action: &'static str,
    limit: Duration,
    slot: MutexGuard<'a, Option<Session>>,
    session: Session,
}

impl Call<'_> {
    pub(super) async fn query(
        &mut self,
        statement: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let Session { client, statements } = &mut self.session;
        let query = async {
            let prepared = match statements.get(statement) {
                Some(prepared) => prepared.clone(),
                None => {
                    let prepared = client.prepare(statement).await?;
                    statements.insert(statement, prepared.clone());
                    prepared
                }
            };
            client.query(&prepared, parameters).await
        };
        within(self.limit, self.action, query).await
    }

    /// Runs statements without parameters and answers.
    pub(super) async fn batch(&mut self, statements: &'static str) -> Result<(), StoreError> {
        within(self.limit, self.action, self.session.client.batch_execute(statements)).await
    }

    pub(super) fn done(mut self) {
        *self.slot = Some(self.session);
    }
}

async fn within<T>(
    limit: Duration,
    action: &'static str,
    call: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::new(action, Described(error))),
        Err(_) => Err(StoreError::new(action, format!("no answer within {limit:?}"))),
    }
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
