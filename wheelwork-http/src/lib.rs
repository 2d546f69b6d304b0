//! HTTP servers with every limit that they need, on one timer wheel.
#![forbid(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

mod app;
mod conn;
mod cut;
mod error;
mod hyper_service;
mod limit;
mod limits;
mod listener;
mod meter;
mod peer;
mod request;
mod server;
mod time;
#[cfg(feature = "rustls")]
mod tls;

pub use app::App;
pub use cut::{Cut, Effect};
pub use error::LimitPassed;
pub use hyper_service::Hyper;
pub use limit::Limit;
pub use limits::{Limits, Rate, RequestLimits};
pub use listener::{Handshake, Listener, Plain, Socket};
pub use peer::Peer;
pub use request::{BodyError, Executor, RequestBody};
pub use server::{NoSignal, Report, Serve, Server, serve};
#[cfg(feature = "rustls")]
pub use tls::{Tls, TlsHandshake};
