//! `Limits`: what a server waits for, and for how long.

use crate::time::FAR;
use http::StatusCode;
use std::time::Duration;

/// The least rate at which a client must send or take bytes.
///
/// It is measured over the time in which the server waits for the client, in windows of a given length. So a
/// slow server does not count against its clients, and a rate is judged only after a whole window.
///
/// ```
/// use std::time::Duration;
/// use wheelwork_http::{Limits, Rate};
///
/// let limits = Limits::default().body_rate(Rate::new(1000, Duration::from_secs(10)));
/// # drop(limits);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) bytes_per_second: u64,
    pub(crate) window: Duration,
}

impl Rate {
    /// At least `bytes_per_second` in each `window` of waiting. A window of zero counts as a nanosecond.
    pub const fn new(bytes_per_second: u64, window: Duration) -> Self {
        let window = if window.is_zero() { Duration::from_nanos(1) } else { window };
        Self { bytes_per_second, window }
    }
}

/// What a server waits for, and for how long.
///
/// The default has every limit that needs no knowledge of the service. `None` turns a limit off. Each limit
/// ends a tick late at most (100 ms with the server's own timer), and never early.
///
/// | limit | default | runs | at its end |
/// |---|---|---|---|
/// | [`handshake`](Self::handshake) | 10 s | from accept through TLS to the first bytes of HTTP | close |
/// | [`header`](Self::header) | 10 s | from the first byte of a header to its end | 408 or GOAWAY, close |
/// | [`body`](Self::body) | 30 s | while the handler waits for the next chunk of the body | 408 |
/// | [`body_rate`](Self::body_rate) | 500 bytes/s over 20 s | the same, until the head of the response is sent | 408 |
/// | [`body_total`](Self::body_total) | off | from the first wait for the body | 408 |
/// | [`handler`](Self::handler) | 60 s | from the header, or the last chunk of the body, to the response's head | 503 |
/// | [`response`](Self::response) | 60 s | while a write waits and the client takes no byte | reset |
/// | [`response_rate`](Self::response_rate) | 500 bytes/s over 60 s | while a write waits | reset |
/// | [`idle`](Self::idle) | 75 s | while no request is in flight | soft close |
/// | [`age`](Self::age) | 1 h plus up to 6 min at random, unlimited grace | from accept | soft close |
/// | [`ping`](Self::ping) | each 60 s, answered in 20 s | HTTP/2: while no request, body or pong comes | close |
/// | [`control_frames`](Self::control_frames) | 100 in a second | HTTP/2: on top of those that requests and bodies account for | GOAWAY, close |
/// | [`tunnel`](Self::tunnel) | 5 min | after an upgrade, while no byte flows | close |
/// | [`connections`](Self::connections) | off | | the idlest are closed; accepts wait |
/// | [`connections_per_address`](Self::connections_per_address) | off | | close |
/// | [`shutdown`](Self::shutdown) | 30 s | from the shutdown's signal | close |
///
/// ```
/// use std::time::Duration;
/// use wheelwork_http::Limits;
///
/// let limits = Limits::default()
///     .handler(Duration::from_secs(10))
///     .connections(20_000)
///     .age(None, None); // off
/// # drop(limits);
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    pub(crate) handshake: Option<Duration>,
    pub(crate) header: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) tunnel: Option<Duration>,
    pub(crate) age: Option<Duration>,
    pub(crate) age_jitter: Option<Duration>,
    pub(crate) grace: Option<Duration>,
    pub(crate) ping: Option<Duration>,
    pub(crate) pong: Duration,
    pub(crate) control_frames: Option<u32>,
    pub(crate) shutdown: Option<Duration>,
    pub(crate) connections: Option<usize>,
    pub(crate) connections_per_address: Option<usize>,
    pub(crate) handler_status: StatusCode,
    pub(crate) request: RequestLimits,
}

/// The limits of one request: those of [`Limits`] that a route can change.
///
/// Start from the server's limits, with [`Limits::for_request`]. A route changes them in one of three ways:
/// [`Serve::limits_for`](crate::Serve::limits_for) decides by the request's header, a handler changes its
/// [`OwnLimits`](crate::OwnLimits), and a `RequestLimits` among the extensions of a response is in force for that
/// response.
///
/// ```
/// use wheelwork_http::Limits;
///
/// let limits = Limits::default();
/// let long_poll = limits.for_request().handler(None);
/// # drop(long_poll);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    pub(crate) handler: Option<Duration>,
    pub(crate) body: Option<Duration>,
    pub(crate) body_rate: Option<Rate>,
    pub(crate) body_total: Option<Duration>,
    pub(crate) response: Option<Duration>,
    pub(crate) response_rate: Option<Rate>,
}

const SECOND: Duration = Duration::from_secs(1);

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Some(10 * SECOND),
            header: Some(10 * SECOND),
            idle: Some(75 * SECOND),
            tunnel: Some(300 * SECOND),
            age: Some(3600 * SECOND),
            age_jitter: None,
            grace: None,
            ping: Some(60 * SECOND),
            pong: 20 * SECOND,
            control_frames: Some(100),
            shutdown: Some(30 * SECOND),
            connections: None,
            connections_per_address: None,
            handler_status: StatusCode::SERVICE_UNAVAILABLE,
            request: RequestLimits {
                handler: Some(60 * SECOND),
                body: Some(30 * SECOND),
                body_rate: Some(Rate::new(500, 20 * SECOND)),
                body_total: None,
                response: Some(60 * SECOND),
                response_rate: Some(Rate::new(500, 60 * SECOND)),
            },
        }
    }
}

impl Limits {
    /// Every limit off.
    pub fn none() -> Self {
        Self {
            handshake: None,
            header: None,
            idle: None,
            tunnel: None,
            age: None,
            ping: None,
            control_frames: None,
            shutdown: None,
            request: RequestLimits::NONE,
            ..Self::default()
        }
    }

    /// From accept (with [`connections`](Self::connections), from its place): the TLS handshake, the first byte, and as
    /// many bytes as tell HTTP/1 from HTTP/2.
    #[must_use]
    pub fn handshake(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { handshake: limit.into(), ..self }
    }

    /// The whole header of a request, from its first byte: on HTTP/1 to the empty line, on HTTP/2 to the end of
    /// a header block, and to the end of any other frame but DATA. HTTP/1 answers 408 (RFC 9110 section
    /// 15.5.9), HTTP/2 sends GOAWAY (RFC 9113 section 6.8). Then the connection is closed.
    #[must_use]
    pub fn header(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { header: limit.into(), ..self }
    }

    /// The time between two chunks of a request's body, while the handler waits for it. Before the head of the
    /// response, the answer is 408, or `DEADLINE_EXCEEDED` for gRPC and gRPC-Web over HTTP/2. After it, the body fails,
    /// and the stream or the connection ends. On HTTP/2, a stream with a chunk of the response that waits for the
    /// client's window is reset at the end of [`response`](Self::response).
    ///
    /// A handler that has polled the body and found nothing counts as waiting until it polls again, or drops the body:
    /// this limit does not see that the rest has come meanwhile. So if a handler reads no further and goes on with
    /// other work, it should drop the body first.
    ///
    /// The streams of an HTTP/2 connection share a link, and may take turns. So while [`body_rate`](Self::body_rate)
    /// runs, and all of them together keep it, a body may pause for this time multiplied by the number of requests in
    /// flight (the highest since there was none).
    #[must_use]
    pub fn body(self, limit: impl Into<Option<Duration>>) -> Self {
        self.for_each_request(|request| request.body(limit))
    }

    /// The least rate of a request's body, while the handler waits for it. It ends as [`body`](Self::body) does.
    ///
    /// The streams of an HTTP/2 connection share a link. So the bodies of all of them count: while the connection moves at
    /// the least rate, no stream is cut for its share. A busy stream can hide a slow one in this way.
    /// [`body`](Self::body) still ends a stream that has stopped, but later, and the grace of [`age`](Self::age), if it
    /// has one, ends the connection.
    ///
    /// Once the head of the response is sent, this limit does not run any more, because a call that streams in both
    /// directions may send little. It goes on if the response carries [`RequestLimits`], or if
    /// [`OwnLimits`](crate::OwnLimits) are changed afterwards. This is no way around the limits: [`body`](Self::body)
    /// still ends a body that makes no progress, and the grace of [`age`](Self::age) its connection.
    #[must_use]
    pub fn body_rate(self, least: impl Into<Option<Rate>>) -> Self {
        self.for_each_request(|request| request.body_rate(least))
    }

    /// The whole body of a request, from the first wait for it. It ends as [`body`](Self::body) does. On HTTP/2, time
    /// does not count while the window of the connection is used up by services that do not read. The other limits of
    /// the body begin anew after such a time.
    #[must_use]
    pub fn body_total(self, limit: impl Into<Option<Duration>>) -> Self {
        self.for_each_request(|request| request.body_total(limit))
    }

    /// From the complete header to the head of the response. While the handler waits for the body, the body's limits
    /// run instead, and this clock starts anew with each chunk that arrives. So an upload does not count as work of the
    /// handler, and this limit may be shorter than [`body`](Self::body). If all limits of the body are off, this one
    /// also runs during the wait. At the end, the handler's future is dropped, and the answer is 503, or what
    /// [`handler_status`](Self::handler_status) says. A call of gRPC or gRPC-Web over HTTP/2 is answered with the status
    /// `DEADLINE_EXCEEDED`. If its caller has sent a `grpc-timeout`, the call also ends when that time has passed since
    /// the header, unless the head of the response was sent before. That clock never begins anew, and runs even if this
    /// limit is off.
    #[must_use]
    pub fn handler(self, limit: impl Into<Option<Duration>>) -> Self {
        self.for_each_request(|request| request.handler(limit))
    }

    /// The answer at the end of [`handler`](Self::handler): 503 by default. A gateway prefers 504.
    #[must_use]
    pub fn handler_status(self, status: StatusCode) -> Self {
        Self { handler_status: status, ..self }
    }

    /// The time without progress while a write waits: the client takes no bytes, or on HTTP/2 opens no window. Progress
    /// is what the client takes. If [`Socket::untaken`](crate::Socket::untaken) does not know that, it is what the
    /// kernel takes, and the kernel takes more only when a part of its buffer is free. The connection is reset; on
    /// HTTP/2 the stream, if the socket takes bytes. There, the streams share a link, as with
    /// [`body`](Self::body), and while the socket is full, what the client takes counts for each of them. So a stream
    /// that has stopped goes on beside one that keeps the socket full.
    #[must_use]
    pub fn response(self, limit: impl Into<Option<Duration>>) -> Self {
        self.for_each_request(|request| request.response(limit))
    }

    /// The least rate at which a client takes a response, while a write waits. It ends as
    /// [`response`](Self::response) does. As with [`body_rate`](Self::body_rate), the bytes of all streams of the
    /// connection count.
    #[must_use]
    pub fn response_rate(self, least: impl Into<Option<Rate>>) -> Self {
        self.for_each_request(|request| request.response_rate(least))
    }

    /// From the end of the last request. HTTP/1: no byte of the next one has come. HTTP/2: no stream is open, and the
    /// client takes nothing of a response that the system still holds; pings do not count. The connection is closed
    /// softly, so a request that comes meanwhile is answered or can be repeated (RFC 9112 sections 9.3.1 and 9.5, RFC
    /// 9113 section 6.8).
    #[must_use]
    pub fn idle(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { idle: limit.into(), ..self }
    }

    /// The age at which a connection is closed softly, and how long its requests may go on then. With no grace,
    /// they go on until they end. Tunnels of HTTP/1 have no age.
    ///
    /// On HTTP/2, the soft close is a GOAWAY with a ping, and once the client has answered the ping, another GOAWAY that
    /// ends new requests. Until then a client may begin some (RFC 9113 section 6.8). So one that answers no such ping
    /// can use its connection as long as it likes, unless there is a grace.
    #[must_use]
    pub fn age(
        self,
        limit: impl Into<Option<Duration>>,
        grace: impl Into<Option<Duration>>,
    ) -> Self {
        Self { age: limit.into(), grace: grace.into(), ..self }
    }

    /// Up to this much is added to the age of each connection, so that connections that came in one burst do not end in
    /// one. `None`, the default, means a tenth of the age, and zero means nothing.
    #[must_use]
    pub fn age_jitter(self, most: impl Into<Option<Duration>>) -> Self {
        Self { age_jitter: most.into(), ..self }
    }

    /// HTTP/2: pings a client that sends no request, body or pong for `interval`, and closes the connection if no
    /// answer comes within `answer`. A ping waits behind what was written before it, which a slow link may carry for
    /// minutes. So while the client still takes those bytes, no answer is late.
    #[must_use]
    pub fn ping(self, interval: impl Into<Option<Duration>>, answer: Duration) -> Self {
        // hyper adds them to the current time, and panics if no clock can tell the sum.
        Self { ping: interval.into().map(|every| every.min(FAR)), pong: answer.min(FAR), ..self }
    }

    /// HTTP/2: the most control frames in a second, on top of those that requests and bodies account for. A control
    /// frame is any but DATA with bytes and the first frame of a request: PING, SETTINGS, PRIORITY, WINDOW_UPDATE,
    /// RST_STREAM, those of unknown types, and answers to the server's own. A connection begins with the allowance of
    /// ten seconds, and as much again can be saved up. On top come 20 for each request, 8 for each chunk of a response,
    /// 1 for each 64 bytes that the server writes, and 1 for each frame of DATA with bytes. So for each chunk a client
    /// may send a ping and two WINDOW_UPDATE frames, or it may send two of these for each 128 bytes. 0 counts as 1. At
    /// its end, the client gets GOAWAY with ENHANCE_YOUR_CALM (RFC 9113 section 10.5), and the connection is closed.
    #[must_use]
    pub fn control_frames(self, per_second: impl Into<Option<u32>>) -> Self {
        Self { control_frames: per_second.into(), ..self }
    }

    /// The time without a byte in either direction after an upgrade (WebSocket) or CONNECT. Reads and writes
    /// of the upgraded connection fail then. Tunnels within HTTP/2 share a connection: it is closed when nothing but
    /// tunnels is in flight, and no DATA has flowed in any of them.
    #[must_use]
    pub fn tunnel(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { tunnel: limit.into(), ..self }
    }

    /// The most connections that are served. If one more comes, those that are idle longest are closed to make room.
    /// Until there is room, it waits, and no other one is accepted. 0 counts as 1, because a server with a limit of 0
    /// would serve nobody.
    #[must_use]
    pub fn connections(self, most: impl Into<Option<usize>>) -> Self {
        Self { connections: most.into(), ..self }
    }

    /// The most connections from one address, or from one /64 network of IPv6. A further one is closed
    /// immediately. Behind a proxy all connections have the proxy's address, except with [`Proxied`](crate::Proxied).
    #[must_use]
    pub fn connections_per_address(self, most: impl Into<Option<usize>>) -> Self {
        Self { connections_per_address: most.into(), ..self }
    }

    /// How long requests may go on after the shutdown's signal. Then the connections are closed.
    #[must_use]
    pub fn shutdown(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { shutdown: limit.into(), ..self }
    }

    /// The limits of a request, to change some for a route.
    pub fn for_request(&self) -> RequestLimits {
        self.request
    }

    fn for_each_request(self, change: impl FnOnce(RequestLimits) -> RequestLimits) -> Self {
        Self { request: change(self.request), ..self }
    }
}

impl RequestLimits {
    const NONE: Self = Self {
        handler: None,
        body: None,
        body_rate: None,
        body_total: None,
        response: None,
        response_rate: None,
    };

    /// Whether a limit runs while the handler waits for the body.
    pub(crate) fn limit_the_body(&self) -> bool {
        let has_rate = self.body_rate.is_some_and(|rate| rate.bytes_per_second > 0);
        self.body.is_some() || has_rate || self.body_total.is_some()
    }

    /// See [`Limits::handler`].
    #[must_use]
    pub fn handler(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { handler: limit.into(), ..self }
    }

    /// See [`Limits::body`].
    #[must_use]
    pub fn body(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { body: limit.into(), ..self }
    }

    /// See [`Limits::body_rate`].
    #[must_use]
    pub fn body_rate(self, least: impl Into<Option<Rate>>) -> Self {
        Self { body_rate: least.into(), ..self }
    }

    /// See [`Limits::body_total`].
    #[must_use]
    pub fn body_total(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { body_total: limit.into(), ..self }
    }

    /// See [`Limits::response`]. On HTTP/1 it is in force from the head of the response to the next one. On HTTP/2 it
    /// ends the stream, and while the socket is full, the server's limit still runs and ends the connection.
    #[must_use]
    pub fn response(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { response: limit.into(), ..self }
    }

    /// See [`Limits::response_rate`]. It is in force as [`response`](Self::response) is.
    #[must_use]
    pub fn response_rate(self, least: impl Into<Option<Rate>>) -> Self {
        Self { response_rate: least.into(), ..self }
    }
}
