//! `Settings`: what all connections of a server share.

use crate::counts::Counts;
use crate::cut::{Cut, Effect};
use crate::limit::Limit;
use crate::limits::{Limits, RequestLimits};
use crate::peer::Peer;
use crate::time::{Clock, NEVER};
use http::Request;
use hyper::body::Incoming;
use std::fmt;
use std::hash::RandomState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The callback for cuts.
pub(crate) type OnCut = Arc<dyn Fn(&Cut<'_>) + Send + Sync>;

/// The limits of a request by its header.
pub(crate) type LimitsFor = Arc<dyn Fn(&Request<()>) -> Option<RequestLimits> + Send + Sync>;

pub(crate) struct Settings {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) counts: Arc<Counts>,
    /// Whether each request has the peer among its extensions.
    pub(crate) tells_peer: bool,
    /// Whether each request has its limits among its extensions.
    pub(crate) tells_limits: bool,
    pub(crate) on_cut: Option<OnCut>,
    pub(crate) limits_for: Option<LimitsFor>,
    /// The jitter of the ages.
    pub(crate) random: RandomState,
    /// When the requests in flight are cut off.
    pub(crate) shutdown_deadline: AtomicU64,
}

impl Settings {
    /// The limits of a request, if a route has changed them. A panic of the callback is caught.
    #[inline]
    pub(crate) fn limits_for(&self, request: &Request<Incoming>) -> Option<RequestLimits> {
        let limits_for = self.limits_for.as_ref()?;
        let mut head = Request::new(());
        head.method_mut().clone_from(request.method());
        head.uri_mut().clone_from(request.uri());
        *head.version_mut() = request.version();
        head.headers_mut().clone_from(request.headers());
        catch_unwind(AssertUnwindSafe(|| limits_for(&head))).unwrap_or(None)
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
        self.counts.cut(limit);
        #[cfg(feature = "tracing")]
        tracing::debug!(%limit, ?effect, %peer, ?open_for, in_flight, "a limit has passed");
        if let Some(on_cut) = &self.on_cut {
            let cut = Cut { limit, effect, peer, open_for, in_flight };
            let _ = catch_unwind(AssertUnwindSafe(|| on_cut(&cut)));
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("limits", &self.limits).finish_non_exhaustive()
    }
}
