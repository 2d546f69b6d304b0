//! The simulated server: one backend for each connection, as PostgreSQL has them.
//!
//! A backend that carries out a statement does not look at its connection. So it goes on, with its locks, when
//! the client has given up, and what it then commits is committed.

use super::db::{Backend, Db, Transaction};
use super::fault::Fault;
use super::net::{Net, Wire};
use super::protocol::{Answer, Message, Opening, Parameters, Reader};
use super::statement::{Rows, Statement, shape};
use super::stream::{self, Far, Stream};
use super::world::{self, Home, Process};
use crate::store::postgres::Postgres;
use crate::store::postgres::connect::{self, Connecting, Connector, Later};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_postgres::{CancelToken, Client, Config, NoTls};

/// How long the server may let a session wait for a notice, in microseconds.
const LONGEST_WAIT: u64 = 20_000;

/// Clones are the same server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) db: Db,
    pub(super) net: Net,
}

impl Server {
    pub(super) fn new() -> Self {
        Self { db: Db::new(), net: Net::default() }
    }

    fn dial(&self, client: Process) -> Stream {
        let wire = self.net.connect(client);
        let (stream, far) = stream::connect(&wire);
        world::spawn(Home::of(Db::PROCESS), open(self.db.clone(), wire, far));
        stream
    }

    /// The store of a process.
    pub(super) fn store(&self, process: Process, limit: Duration) -> Postgres {
        let mut config = Config::new();
        config.user("simulated");
        let (server, cancels) = (self.clone(), self.clone());
        let dial = move |ears| -> Connecting {
            let (server, config) = (server.clone(), config.clone());
            Box::pin(async move {
                let stream = server.dial(process);
                let (client, connection) = config.connect_raw(stream, NoTls).await?;
                Ok(connect::Session::new(client, connection, ears))
            })
        };
        let cancel = move |token: CancelToken| -> Later<()> {
            let server = cancels.clone();
            Box::pin(async move {
                let _ = token.cancel_query_raw(server.dial(process), NoTls).await;
            })
        };
        Postgres::over(&Connector::of(dial, cancel, "simulated".into()), limit)
    }

    /// A connection of a user's, whose network is always good.
    pub(super) async fn user(&self) -> Result<Client, tokio_postgres::Error> {
        let stream = self.dial(Process(0));
        let mut config = Config::new();
        let (client, connection) = config.user("user").connect_raw(stream, NoTls).await?;
        world::spawn(world::home(), async {
            let _ = connection.await;
        });
        Ok(client)
    }

    pub(super) fn crash(&self) {
        self.db.crash();
        self.net.reset_all();
    }
}

/// What a connection sets for its statements.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    /// An open transaction without a statement ends after this.
    idle_timeout: Option<Duration>,
}

impl Settings {
    fn read(&mut self, text: &str) {
        for (name, value) in text.split(';').filter_map(|set| set.trim().split_once('=')) {
            let value = value.trim().trim_matches('\'').trim_end_matches('s');
            let unit = if name.contains("idle") { 1_000 } else { 1 };
            let time = value.parse().ok().filter(|n| *n > 0);
            let time = time.map(|n: u64| Duration::from_millis(n * unit));
            match name.trim() {
                "SET statement_timeout" => self.statement_timeout = time,
                "SET lock_timeout" => self.lock_timeout = time,
                "SET idle_in_transaction_session_timeout" => self.idle_timeout = time,
                _ => {}
            }
        }
    }
}

/// A connection that is open.
struct Session {
    db: Db,
    wire: Wire,
    backend: Backend,
    settings: Settings,
    sent: UnboundedSender<Vec<u8>>,
    answer: Answer,
    statements: BTreeMap<String, String>,
    bound: Option<(String, Parameters)>,
    open: Option<Transaction>,
    /// The open transaction has failed.
    failed: bool,
    /// After an error, all is passed over until the next `Sync`.
    skips: bool,
    notices: Option<Listener>,
    /// It takes no writes.
    read_only: bool,
}

struct Listener {
    db: Db,
    number: u64,
    told: UnboundedReceiver<String>,
    /// The next notice, and when the session tells it.
    next: Option<(Instant, String)>,
}

impl Listener {
    /// The server answers other sessions meanwhile: it wakes one that listens when it has time.
    async fn notice(&mut self) -> String {
        if self.next.is_none() {
            let told = self.told.recv().await;
            let wait = Duration::from_micros(fastrand::u64(..=LONGEST_WAIT));
            self.next = told.map(|notice| (world::now() + wait, notice));
        }
        if let Some((at, _)) = self.next {
            world::sleep_until(at).await;
        }
        self.next.take().map(|(_, notice)| notice).unwrap_or_default()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.db.unlisten(self.number);
    }
}

async fn open(db: Db, wire: Wire, Far { received, sent }: Far) {
    let mut reader = Reader::new(received);
    let opening = reader.opening().await;
    if db.state().down {
        return;
    }
    match opening {
        None => {}
        Some(Opening::Cancel(backend)) => db.cancel(backend),
        Some(Opening::Startup) => {
            let (backend, read_only) = (db.backend(wire.clone()), db.state().read_only);
            let mut session = Session {
                db,
                wire,
                backend,
                settings: Settings::default(),
                sent,
                answer: Answer::default(),
                statements: BTreeMap::new(),
                bound: None,
                open: None,
                failed: false,
                skips: false,
                notices: None,
                read_only,
            };
            session.answer.started(session.backend.number);
            session.ready();
            session.serve(&mut reader).await;
        }
    }
}

impl Session {
    async fn serve(&mut self, reader: &mut Reader) {
        loop {
            let idle = self.settings.idle_timeout.filter(|_| self.open.is_some());
            let idle = async {
                match idle {
                    Some(limit) => world::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            let told = async {
                match &mut self.notices {
                    Some(listener) => listener.notice().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.wire.ended() => return,
                message = reader.message() => match message {
                    None | Some(Message::Terminate) => return,
                    Some(message) => self.message(message).await,
                },
                payload = told => {
                    self.answer.notice(&payload);
                    self.flush();
                }
                () = idle => return,
            }
        }
    }

    fn flush(&mut self) {
        let _ = self.sent.send(self.answer.take()); // nobody may be there any more
    }

    fn ready(&mut self) {
        let status = match self.open {
            _ if self.failed => b'E',
            Some(_) => b'T',
            None => b'I',
        };
        self.answer.ready(status);
        self.flush();
    }

    async fn message(&mut self, message: Message) {
        match message {
            Message::Sync => {
                self.skips = false;
                self.ready();
            }
            _ if self.skips => {}
            Message::Simple(text) => {
                self.simple(&text);
                self.ready();
            }
            Message::Parse { name, text } => {
                self.statements.insert(name, text);
                self.answer.short(b'1');
            }
            Message::Describe { name } => {
                let (parameters, columns) = shape(&self.statements[&name]);
                self.answer.described(parameters, columns);
            }
            Message::Bind { name, parameters } => {
                self.bound = Some((self.statements[&name].clone(), parameters));
                self.answer.short(b'2');
            }
            Message::Execute => {
                let Some((text, parameters)) = self.bound.take() else { return };
                match self.execute(&text, &parameters).await {
                    Ok(rows) => {
                        rows.iter().for_each(|row| self.answer.row(row));
                        self.answer.complete(rows.len());
                    }
                    Err(fault) => {
                        self.failed = self.open.as_ref().is_some_and(|open| {
                            open.abort();
                            true
                        });
                        self.skips = true;
                        self.answer.error(fault);
                    }
                }
            }
            Message::Close { name } => {
                self.statements.remove(&name);
                self.answer.short(b'3');
            }
            Message::Terminate => {}
        }
    }

    /// Statements that are sent without parameters.
    fn simple(&mut self, text: &str) {
        match text.trim_end_matches(';') {
            "START TRANSACTION" => self.open = Some(self.db.begin()),
            "COMMIT" => {
                let committed = self.open.take().filter(|_| !self.failed);
                let committed = committed.map_or(Err(Fault::Aborted), Transaction::commit);
                self.failed = false;
                if let Err(fault) = committed {
                    return self.answer.error(fault);
                }
            }
            "ROLLBACK" => (self.open, self.failed) = (None, false),
            text if text.starts_with("SET ") => {
                self.settings.read(text);
                return self.answer.text(&self.backend.number.to_string());
            }
            text if text.starts_with("LISTEN ") => {
                let (number, told) = self.db.listen();
                self.notices = Some(Listener { db: self.db.clone(), number, told, next: None });
                self.wire.listens();
            }
            other => panic!("the simulation does not know {other:?}"),
        }
        self.answer.complete(0);
    }

    /// Carries out a statement, in a transaction of its own unless one is open.
    async fn execute(&self, text: &str, parameters: &Parameters) -> Result<Rows, Fault> {
        if self.failed {
            return Err(Fault::Aborted);
        }
        if self.read_only && WRITES.iter().any(|word| text.contains(word)) {
            return Err(Fault::ReadOnly);
        }
        let own = if self.open.is_none() { Some(self.db.begin()) } else { None };
        let Some(transaction) = own.as_ref().or(self.open.as_ref()) else {
            return Err(Fault::Aborted);
        };
        let running = async {
            let (before, after) = slowness(&self.db);
            world::sleep(before).await;
            let lock_timeout = self.settings.lock_timeout;
            let statement = Statement::new(&self.db, transaction.tx, lock_timeout, text);
            let rows = statement.run(parameters).await?;
            world::sleep(after).await;
            Ok(rows)
        };
        let limit = self.settings.statement_timeout.unwrap_or(Duration::from_secs(1 << 30));
        let rows = tokio::select! {
            biased;
            () = self.backend.cancelled() => Err(Fault::Cancelled),
            rows = world::within(limit, running) => rows.unwrap_or(Err(Fault::StatementTimeout)),
        }?;
        if let Some(own) = own {
            own.commit()?;
        }
        Ok(rows)
    }
}

/// What a statement has that changes or locks something.
const WRITES: [&str; 5] = ["INSERT ", "UPDATE ", "DELETE ", "nextval", "FOR KEY SHARE"];

/// How long a statement takes before it begins, and then with its locks.
fn slowness(db: &Db) -> (Duration, Duration) {
    let slow = db.state().slow;
    if slow.is_zero() {
        return (Duration::from_micros(fastrand::u64(10..200)), Duration::ZERO);
    }
    let most = u64::try_from(slow.as_micros()).unwrap_or(u64::MAX);
    let part = || Duration::from_micros(fastrand::u64(..=most));
    if fastrand::bool() { (part(), Duration::ZERO) } else { (Duration::ZERO, part()) }
}
