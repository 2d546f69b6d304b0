//! `Server`: the user's handle to a server.

use crate::conn::{Desk, Flags};
use crate::limit::Limit;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A handle to a server, from [`Serve::server`](crate::Serve::server): counts, and control.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # use wheelwork_http::{Limit, Limits, RequestBody, serve};
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let app = axum::Router::new();
/// let serving = serve(listener, app, Limits::default());
/// let server = serving.server();
/// tokio::spawn(async { serving.await });
/// println!("{} connections, {} cut for slow headers", server.connections(), server.cuts(Limit::Header));
/// server.close_idlest(100); // memory is short
/// server.shutdown();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server(pub(super) Arc<Desk>);

impl Server {
    /// The number of connections now.
    pub fn connections(&self) -> usize {
        self.0.open()
    }

    /// The number of accepted connections, including those that were refused because of their address.
    pub fn accepted(&self) -> u64 {
        self.0.counts.accepted()
    }

    /// How often this limit has passed.
    pub fn cuts(&self, limit: Limit) -> u64 {
        self.0.counts.cuts(limit)
    }

    /// Closes up to `n` connections without requests, those that are unused longest. Returns how many were asked
    /// to close. O(connections).
    pub fn close_idlest(&self, n: usize) -> usize {
        let idlest = self.0.idlest(n);
        idlest.iter().for_each(|conn| conn.notify(Flags::ROOM));
        idlest.len()
    }

    /// Shuts the server down, like the signal of
    /// [`with_graceful_shutdown`](crate::Serve::with_graceful_shutdown).
    pub fn shutdown(&self) {
        self.0.shutdown.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}
