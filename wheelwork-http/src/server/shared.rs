//! `Shared`: the settings of a server, which all of its connections share.

use super::desk::Desk;
use crate::cut::{Cut, Effect};
use crate::limit::Limit;
use crate::limits::{Limits, RequestLimits};
use crate::peer::Peer;
use crate::request::Executor;
use crate::time::{Clock, NEVER};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The callback for cuts.
pub(crate) type OnCut = Arc<dyn Fn(&Cut<'_>) + Send + Sync>;

/// The limits of a request by its header.
pub(crate) type LimitsFor = Arc<dyn Fn(&Request<()>) -> Option<RequestLimits> + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) http1: http1::Builder,
    pub(crate) http2: http2::Builder<Executor>,
    pub(crate) desk: Arc<Desk>,
    pub(super) on_cut: Option<OnCut>,
    pub(super) limits_for: Option<LimitsFor>,
    /// When the requests in flight are cut off.
    pub(super) shutdown_deadline: AtomicU64,
}

impl Shared {
    /// The limits of a request, if a route has changed them.
    #[inline]
    pub(crate) fn limits_for(&self, request: &Request<Incoming>) -> Option<RequestLimits> {
        let limits_for = self.limits_for.as_ref()?;
        let mut head = Request::new(());
        head.method_mut().clone_from(request.method());
        head.uri_mut().clone_from(request.uri());
        *head.version_mut() = request.version();
        head.headers_mut().clone_from(request.headers());
        limits_for(&head)
    }

    pub(crate) fn shutdown_deadline(&self) -> u64 {
        match self.shutdown_deadline.load(Ordering::Relaxed) {
            0 => NEVER,
            deadline => deadline,
        }
    }

    /// Counts a cut, and tells the callback. A panic of the callback is caught.
    #[cold]
    pub(crate) fn report(
        &self,
        limit: Limit,
        effect: Effect,
        peer: &Peer,
        open_for: Duration,
        in_flight: usize,
    ) {
        self.desk.count(limit);
        #[cfg(feature = "metrics")]
        metrics::counter!("wheelwork_http_cuts_total", "limit" => limit.name()).increment(1);
        #[cfg(feature = "tracing")]
        tracing::debug!(%limit, ?effect, %peer, ?open_for, in_flight, "a limit has passed");
        if let Some(on_cut) = &self.on_cut {
            let cut = Cut { limit, effect, peer, open_for, in_flight };
            let _ = catch_unwind(AssertUnwindSafe(|| on_cut(&cut)));
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("limits", &self.limits).finish_non_exhaustive()
    }
}
