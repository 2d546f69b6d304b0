//! `OwnLimits`: the limits of a request in flight, for the service that handles it.

use crate::conn::{Conn, Record};
use crate::limits::RequestLimits;
use std::sync::{Arc, Weak};

/// The limits of a request in flight, among its extensions after [`Serve::tell_limits`](crate::Serve::tell_limits).
///
/// A handler or a layer changes the limits of its request with it, when it knows more than the header tells: whose
/// request it is, or how much there is to do. Clones are handles to the same request, and keep nothing alive.
///
/// ```
/// use axum::{Extension, Router, routing::get};
/// use std::time::Duration;
/// use wheelwork_http::{Limits, OwnLimits, serve};
///
/// async fn report(Extension(own): Extension<OwnLimits>) -> &'static str {
///     own.change(|limits| limits.handler(Duration::from_secs(600)));
///     "a long report"
/// }
///
/// # async fn example(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
/// let app = Router::new().route("/report", get(report));
/// serve(listener, app, Limits::default()).tell_limits().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OwnLimits {
    conn: Weak<Conn>,
    record: Weak<Record>,
}

impl OwnLimits {
    pub(super) fn new(conn: &Arc<Conn>, record: &Arc<Record>) -> Self {
        Self { conn: Arc::downgrade(conn), record: Arc::downgrade(record) }
    }

    /// The limits in force. `None` if the request has ended.
    pub fn get(&self) -> Option<RequestLimits> {
        let (conn, record) = self.request()?;
        Some(record.limits(&conn.limits().request))
    }

    /// Puts other limits in force: those of the handler and the body from now on, over HTTP/1, those of the response
    /// only before its head. A clock that runs keeps its start. So a limit that would have ended by now ends within a
    /// tick.
    ///
    /// Returns false if the request has ended, or one of its limits has passed.
    pub fn change(&self, change: impl FnOnce(RequestLimits) -> RequestLimits) -> bool {
        let Some((conn, record)) = self.request() else { return false };
        let server = &conn.limits().request;
        let own = change(record.limits(server)); // under no lock
        let deadline = record.set_own(own, conn.flow());
        conn.arm(deadline);
        record.passed().is_none()
    }

    fn request(&self) -> Option<(Arc<Conn>, Arc<Record>)> {
        Some((self.conn.upgrade()?, self.record.upgrade()?))
    }
}
