//! An HTTP client whose pool and keep-alive pings use the timer, on hyper-util.
//!
//! For a deadline, wrap the call: `timer.timeout(limit, client.get(uri))`. It includes the time to
//! connect.

use axum::body::Body;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use wheelwork::HashedWheelTimer;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A connection that no request uses for this long is closed.
    pub unused: Duration,
    /// HTTP/2: the server is pinged when nothing has come from it for this long.
    pub ping: Duration,
    /// HTTP/2: all requests of a connection fail if its server does not answer a ping within this.
    pub pong: Duration,
}

pub type Client = legacy::Client<HttpConnector, Body>;

pub fn client(timer: &HashedWheelTimer, limits: Limits, http2_only: bool) -> Client {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    // With this, or with `set_connect_timeout`, it would need the timer of the runtime.
    connector.set_happy_eyeballs_timeout(None);
    legacy::Client::builder(TokioExecutor::new())
        .timer(timer.clone())
        .http2_only(http2_only)
        .http2_keep_alive_interval(limits.ping)
        .http2_keep_alive_timeout(limits.pong)
        .pool_timer(timer.clone())
        .pool_idle_timeout(limits.unused)
        .build(connector)
}
