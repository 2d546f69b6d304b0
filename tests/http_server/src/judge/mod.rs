//! Puts the server and the client to the test.
//!
//! The server and the client run on a runtime without a timer. The judges run on another runtime, and
//! judge by their own clock.
//!
//! - `wire`: an HTTP/1 connection by hand
//! - `clients`: the judges of the server
//! - `peers`: the judges of the client
//! - `shutdown`: brings the server's shutdown to the clients
//! - `verdict`: whether something happened in time
//! - `judges`: runs them all
//! - `table`: the result

mod clients;
mod judges;
mod peers;
mod shutdown;
mod table;
mod verdict;
mod wire;

use crate::{app, client, server};
use judges::Judges;
use shutdown::Shutdown;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinError;
use verdict::Span;
use wheelwork::{BuildError, HashedWheelTimer};

pub(crate) use table::Table;

/// The limits that are judged, and those that the server and the client keep. They differ only if the
/// program is to fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) server: server::Limits,
    pub(crate) client: client::Limits,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) judged: Limits,
    pub(crate) kept: Limits,
    /// How many clients of each kind there are.
    pub(crate) clients: u64,
    pub(crate) tick: Duration,
    pub(crate) grace: Duration,
}

/// What each judge knows.
#[derive(Clone)]
struct Plan {
    server: SocketAddr,
    server_limits: server::Limits,
    client_limits: client::Limits,
    /// What the client keeps: the same, unless the program is to fail.
    kept: client::Limits,
    /// The tick, and how much later a busy machine may be.
    slack: Duration,
    timer: HashedWheelTimer,
    runtime: Handle,
}

impl Plan {
    /// When something is missed that is due in `due`.
    fn overdue(&self, due: Span) -> tokio::time::Instant {
        (due.latest + self.slack).into()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum JudgeError {
    #[error("cannot start the server: {0}")]
    Start(#[from] io::Error),
    #[error("cannot start the timer: {0}")]
    Timer(#[from] BuildError),
    #[error("the server has failed: {0}")]
    Server(#[from] JoinError),
}

/// Runs all judges, on a server and clients that keep the limits.
pub(crate) fn run(settings: &Settings) -> Result<Table, JudgeError> {
    let timer = HashedWheelTimer::builder().tick_duration(settings.tick).build()?;
    // `enable_io` alone: on this runtime, each use of tokio's own timer would panic.
    let served = runtime::Builder::new_multi_thread().enable_io().build()?;
    let judging = runtime::Builder::new_current_thread().enable_all().build()?;
    let table = judging.block_on(judge(settings, timer, served.handle()));
    served.shutdown_background();
    table
}

async fn judge(
    settings: &Settings,
    timer: HashedWheelTimer,
    runtime: &Handle,
) -> Result<Table, JudgeError> {
    let listener = listen(runtime)?;
    let plan = Plan {
        server: listener.local_addr()?,
        server_limits: settings.judged.server,
        client_limits: settings.judged.client,
        kept: settings.kept.client,
        slack: settings.tick + settings.grace,
        timer: timer.clone(),
        runtime: runtime.clone(),
    };
    let (shut_down, told) = oneshot::channel::<()>();
    let until = async { drop(told.await) };
    let server = server::serve(listener, app::app(), timer, settings.kept.server, until);
    let server = runtime.spawn(server);

    let mut judges = Judges::new(plan, settings.clients);
    judges.start("fast", "200, closed", clients::fast);
    judges.start("hundred requests", "closed: idle", clients::hundred_requests);
    judges.start("silent", "closed: idle", clients::silent);
    judges.start("half a header", "closed: idle", clients::half_a_header);
    judges.start("header byte by byte", "closed: header", clients::byte_by_byte);
    judges.start("half a body", "503: request", clients::half_a_body);
    judges.start("slow handler", "503: request", clients::slow_handler);
    judges.start("response not read", "closed: idle", clients::unread_response);
    judges.start("over HTTP/2", "200, 503: request", peers::http2);
    judges.start("unused in the pool", "closed: unused", peers::unused);
    judges.start("frozen HTTP/2 server", "error: ping", peers::frozen);
    judges.finish().await;

    let (shutdown, orders) = Shutdown::new();
    let at_shutdown = shutdown.clone();
    judges.start("shutdown: under way", "200, closed", move |plan| {
        clients::under_way(plan, at_shutdown.clone())
    });
    judges.start("shutdown: unused", "closed", move |plan| {
        clients::kept_alive(plan, shutdown.clone())
    });
    orders.begin(shut_down).await;
    judges.finish().await;
    let shutdown = server.await?;
    judges.start("after the shutdown", "refused", clients::refused);
    judges.finish().await;
    Ok(judges.into_table(shutdown))
}

/// A listener of the server's runtime.
fn listen(runtime: &Handle) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let _entered = runtime.enter();
    TcpListener::from_std(listener)
}
