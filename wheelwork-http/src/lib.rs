//! HTTP/1 and HTTP/2 servers with every limit that they need, on one timer wheel.
//!
//! [`serve`] runs a tower service, such as axum's `Router` or tonic's `Routes`, on the connections of a listener,
//! within [`Limits`]. hyper speaks the protocols. One thread, that of a [wheelwork](https://docs.rs/wheelwork) timer,
//! runs all limits.
//!
//! ```
//! use axum::{Router, routing::get};
//! use wheelwork_http::{Limits, serve};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Router::new().route("/", get(async || "hello"));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let stop = async { /* wait for a signal */ };
//! serve(listener, app, Limits::default()).with_graceful_shutdown(stop).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Never early**, by the timer's clock. Late by a tick at most, plus scheduling.
//! - **Idle means that no request is in flight**: a handler may take longer than the idle limit.
//! - **A limit measures the client**: data that arrived in time counts, even if the server was suspended, and so do
//!   bytes that the client took from the system's buffer, if the system reports them. If the server itself has closed
//!   the window, the client is not blamed.
//! - **HTTP/2 streams share a rate**: the rates of bodies and responses are measured over the whole connection.
//! - **On HTTP/2, a request's limit ends its stream, not its connection**, except where the protocol leaves no other way.
//! - **A closed connection keeps nothing**: its timeout is cancelled, its memory freed.
//! - **Fail closed**: if the timer is stopped or refuses a timeout, connections are closed, not left without limits.
//! - **A service's panic** ends its connection, or on HTTP/2 its stream. A callback's panic is caught.
//!
//! The [guide] shows how to change, watch and port limits, and the [design] explains how they work.
//!
//! # The main types
//!
//! - [`Limits`] are those of a server, [`RequestLimits`] those that a route can change, and [`OwnLimits`] those of
//!   a request in flight.
//! - [`Serve`] is a server that is set up; [`Server`] is a handle to one that runs.
//! - [`Cut`] is the report of what a [`Limit`] has ended.
//! - [`Listener`] is where connections come from.
//!
//! # Features
//!
//! - `rustls`: the listener `Tls`, with a limited handshake
//! - `metrics`: connections, accepts and cuts in the `metrics` facade
//! - `tracing`: an event of the `tracing` facade for each cut
#![forbid(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

mod conn;
mod counts;
mod cut;
mod error;
mod hyper_service;
mod limit;
mod limits;
mod listener;
mod meter;
mod peer;
mod proxy;
mod request;
mod server;
mod time;
#[cfg(feature = "rustls")]
mod tls;

pub use cut::{Cut, Effect};
pub use error::LimitPassed;
pub use hyper_service::Hyper;
pub use limit::Limit;
pub use limits::{Limits, Rate, RequestLimits};
pub use listener::{Handshake, Listener, Plain, Socket};
pub use peer::Peer;
pub use proxy::{Proxied, ProxiedSocket, ProxyHandshake};
pub use request::{App, BodyError, Executor, OwnLimits, RequestBody};
pub use server::{NoSignal, Report, Serve, Server, serve};
#[cfg(feature = "rustls")]
pub use tls::{Tls, TlsHandshake};

/// Limits of a route and of a request, watching, coming from nginx, and what to know. Exists only in the documentation.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

/// How it works: the states of a connection, and what the RFCs say. Exists only in the documentation.
#[cfg(doc)]
#[doc = include_str!("../docs/design.md")]
pub mod design {}

/// The README's program is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
