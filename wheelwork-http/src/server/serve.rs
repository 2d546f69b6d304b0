//! `serve` and `Serve`: the loop that accepts, and the shutdown.

use super::drive::Drive;
use super::handle::Server;
use super::room::{Backoff, is_of_one_connection, is_shortage, make_room, wait_for_room};
use super::shared::Shared;
use crate::conn::{Conn, Desk, Flags, LimitsFor, Member, OnCut, Settings};
use crate::cut::Cut;
use crate::limit::Limit;
use crate::limits::{Limits, RequestLimits};
use crate::listener::Listener;
use crate::peer::Peer;
use crate::request::{App, Executor};
use crate::time::{Clock, after};
use http::Request;
use hyper::server::conn::{http1, http2};
use std::fmt;
use std::hash::RandomState;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::yield_now;
use wheelwork::{BuildError, HashedWheelTimer};

/// HTTP/2's window of a connection: that of four streams, by hyper's default. So a stream whose service does not read
/// leaves the others room.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// How often a shutdown looks at the listener. The runtime lets a task accept 128 connections at a time, and Linux lets
/// 4,096 wait by default (`somaxconn`). The last looks are for those that the runtime has not reported yet.
const LAST_LOOKS: usize = 4096 / 128 + 3;

/// Serves HTTP/1 and HTTP/2 on the connections of `listener`, within `limits`.
///
/// `service` is a tower service that is cloned for each connection and request: axum's `Router`, tonic's
/// `Routes`. For a service of hyper, see [`Hyper`](crate::Hyper). Await the result, or configure it further.
///
/// ```
/// use axum::{Router, routing::get};
/// use wheelwork_http::{Limits, serve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Router::new().route("/", get(async || "hello"));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let stop = async { /* wait for a signal */ };
/// let report = serve(listener, app, Limits::default()).with_graceful_shutdown(stop).await?;
/// assert_eq!(report.cut, []);
/// # Ok(())
/// # }
/// ```
pub fn serve<L: Listener, S: App>(listener: L, service: S, limits: Limits) -> Serve<L, S> {
    let mut http2 = http2::Builder::new(Executor(()));
    http2.initial_connection_window_size(CONNECTION_WINDOW);
    Serve {
        listener,
        service,
        limits,
        timer: None,
        on_cut: None,
        limits_for: None,
        tells_peer: false,
        tells_limits: false,
        http1: http1::Builder::new(),
        http2,
        desk: Desk::new(),
        signal: NoSignal(()),
    }
}

/// A server that is configured, from [`serve`]. It runs when it is awaited.
#[must_use = "a server runs when it is awaited"]
pub struct Serve<L, S, F = NoSignal> {
    listener: L,
    service: S,
    limits: Limits,
    timer: Option<HashedWheelTimer>,
    on_cut: Option<OnCut>,
    limits_for: Option<LimitsFor>,
    tells_peer: bool,
    tells_limits: bool,
    http1: http1::Builder,
    http2: http2::Builder<Executor>,
    desk: Arc<Desk>,
    signal: F,
}

/// The signal of a server that only [`Server::shutdown`] ends.
#[derive(Debug)]
pub struct NoSignal(());

impl IntoFuture for NoSignal {
    type Output = ();
    type IntoFuture = std::future::Pending<()>;

    fn into_future(self) -> Self::IntoFuture {
        std::future::pending()
    }
}

/// How a server has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The connections that had requests, or were tunnels, when the time for the shutdown, or their grace, was over.
    /// Their handlers may still be ending.
    pub cut: Vec<Peer>,
}

impl<L, S, F> Serve<L, S, F> {
    /// The timer to use. Without this call, the server makes one with a tick of 100 ms. Stop the timer after the
    /// server: a stop of the timer closes all connections.
    ///
    /// A connection is one pending timeout. If the timer refuses it, the connection is closed.
    pub fn timer(self, timer: &HashedWheelTimer) -> Self {
        Self { timer: Some(timer.clone()), ..self }
    }

    /// Calls `on_cut` for each limit that passes, on the task that finds it. It must not block. A panic is
    /// caught.
    pub fn on_cut(self, on_cut: impl Fn(&Cut<'_>) + Send + Sync + 'static) -> Self {
        Self { on_cut: Some(Arc::new(on_cut)), ..self }
    }

    /// Decides the limits of each request by its header. `None` means those of the server, and so does a panic, which is
    /// caught.
    ///
    /// ```
    /// # fn example<L, S>(serving: wheelwork_http::Serve<L, S>, limits: wheelwork_http::Limits) {
    /// let long_poll = limits.for_request().handler(None);
    /// let serving = serving.limits_for(move |request| {
    ///     (request.uri().path() == "/poll").then_some(long_poll)
    /// });
    /// # drop(serving);
    /// # }
    /// ```
    pub fn limits_for(
        self,
        limits_for: impl Fn(&Request<()>) -> Option<RequestLimits> + Send + Sync + 'static,
    ) -> Self {
        Self { limits_for: Some(Arc::new(limits_for)), ..self }
    }

    /// Puts the [`Peer`] of its connection among the extensions of each request. It costs each request up
    /// to three allocations.
    ///
    /// ```
    /// use axum::{Extension, Router, routing::get};
    /// use wheelwork_http::{Limits, Peer, serve};
    ///
    /// # async fn example(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Router::new().route("/", get(async |Extension(peer): Extension<Peer>| peer.to_string()));
    /// serve(listener, app, Limits::default()).tell_peer().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tell_peer(self) -> Self {
        Self { tells_peer: true, ..self }
    }

    /// Puts the [`OwnLimits`](crate::OwnLimits) of each request among its extensions, so that its handler can change
    /// them. It costs each request up to four allocations.
    pub fn tell_limits(self) -> Self {
        Self { tells_limits: true, ..self }
    }

    /// Sets hyper's options for HTTP/1, such as `half_close` or `max_headers`. Leave its timer and its header limit
    /// alone.
    pub fn http1(mut self, set: impl FnOnce(&mut http1::Builder)) -> Self {
        set(&mut self.http1);
        self
    }

    /// Sets hyper's options for HTTP/2, such as `max_concurrent_streams`. Leave its timer and its pings alone.
    pub fn http2(mut self, set: impl FnOnce(&mut http2::Builder<Executor>)) -> Self {
        set(&mut self.http2);
        self
    }

    /// A handle to the server.
    pub fn server(&self) -> Server {
        Server(self.desk.clone())
    }

    /// Shuts down when `signal` is ready: the connections that wait are the last to be accepted, idle connections are
    /// closed, and requests have the time of [`Limits::shutdown`]. Requests that are left then are cut, and reported.
    /// The server does not wait for the tasks of cut connections: their handlers may go on for a few milliseconds, or
    /// longer if they block. If [`Report::cut`] is not empty, wait until [`Server::connections`] is 0 before you close
    /// what handlers use. This counts no handler of HTTP/2 that blocks its thread after its client has gone.
    pub fn with_graceful_shutdown<G>(self, signal: G) -> Serve<L, S, G>
    where
        G: Future<Output = ()> + Send + 'static,
    {
        Serve {
            listener: self.listener,
            service: self.service,
            limits: self.limits,
            timer: self.timer,
            on_cut: self.on_cut,
            limits_for: self.limits_for,
            tells_peer: self.tells_peer,
            tells_limits: self.tells_limits,
            http1: self.http1,
            http2: self.http2,
            desk: self.desk,
            signal,
        }
    }

    fn into_parts(mut self) -> Result<(L, S, F, Arc<Shared>), BuildError> {
        let timer = match self.timer {
            Some(timer) => timer,
            None => HashedWheelTimer::builder().thread_name("http-limits").build()?,
        };
        // hyper's own header limit has a default if there is a timer.
        self.http1.header_read_timeout(None);
        self.http2.keep_alive_interval(self.limits.ping).keep_alive_timeout(self.limits.pong);
        let settings = Settings {
            clock: Clock::new(timer),
            limits: self.limits,
            counts: self.desk.counts.clone(),
            on_cut: self.on_cut,
            limits_for: self.limits_for,
            tells_peer: self.tells_peer,
            tells_limits: self.tells_limits,
            random: RandomState::new(),
            shutdown_deadline: AtomicU64::new(0),
        };
        let (settings, desk) = (Arc::new(settings), self.desk);
        let shared = Shared { settings, desk, http1: self.http1, http2: self.http2 };
        Ok((self.listener, self.service, self.signal, Arc::new(shared)))
    }
}

impl<L, S, F> IntoFuture for Serve<L, S, F>
where
    L: Listener,
    S: App,
    F: IntoFuture<Output = ()> + Send + 'static,
    F::IntoFuture: Send,
{
    type Output = Result<Report, BuildError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let (listener, service, signal, shared) = self.into_parts()?;
            {
                let mut accepts = pin!(accept_all(listener, service, shared.clone()));
                tokio::select! {
                    () = &mut accepts => {}
                    () = signal.into_future() => {}
                    () = requested(&shared.desk) => {}
                }
                // Connections that wait to be accepted may have sent a request.
                tokio::select! {
                    () = &mut accepts => {}
                    () = async { for _ in 0..LAST_LOOKS { yield_now().await } } => {}
                }
            }
            Ok(shut_down(&shared).await)
        })
    }
}

/// Accepts connections forever.
async fn accept_all<L: Listener, S: App>(mut listener: L, service: S, shared: Arc<Shared>) {
    let mut backoff = Backoff::new();
    loop {
        match listener.accept().await {
            Ok((handshake, peer)) => {
                backoff.reset();
                if let Some(member) = admit(&shared, peer).await {
                    let (shared, service) = (shared.clone(), service.clone());
                    tokio::spawn(Drive::<L::Handshake, S>::new(shared, handshake, member, service));
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if is_shortage(&error) {
                    make_room(&shared, false);
                }
                backoff.wait(&shared).await;
            }
        }
    }
}

/// Makes a connection known to the server, unless there are too many from its address. Only then makes room for it.
async fn admit(shared: &Shared, peer: Peer) -> Option<Member> {
    let Shared { settings, desk, .. } = shared;
    desk.counts.accept();
    if !shared.admits(&peer, &Peer::Local) {
        return None;
    }
    wait_for_room(shared).await;
    Some(Member::enter(desk, Conn::accept(settings.clone(), peer)))
}

/// Waits until [`Server::shutdown`] is called.
async fn requested(desk: &Desk) {
    loop {
        let changed = desk.changed.notified();
        if desk.shutdown.load(Ordering::Acquire) {
            return;
        }
        changed.await;
    }
}

/// Closes all connections softly, waits for their requests, and then closes what is left.
async fn shut_down(shared: &Shared) -> Report {
    let Shared { settings, desk, .. } = shared;
    let deadline = after(settings.clock.now(), settings.limits.shutdown);
    settings.shutdown_deadline.store(deadline, Ordering::Relaxed);
    desk.all().iter().for_each(|conn| conn.notify(Flags::SHUTDOWN));
    let all_left = async {
        loop {
            let changed = desk.changed.notified();
            if desk.open() == 0 {
                return;
            }
            changed.await;
        }
    };
    let is_over = settings.clock.timer.sleep_until(settings.clock.instant(deadline));
    tokio::select! {
        () = all_left => {}
        () = is_over => {
            for conn in desk.all() {
                conn.cut_off(Limit::Shutdown);
                conn.notify(Flags::ABORT);
            }
        }
    }
    Report { cut: desk.counts.take_ended() }
}

impl<L, S, F> fmt::Debug for Serve<L, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve").field("limits", &self.limits).finish_non_exhaustive()
    }
}
