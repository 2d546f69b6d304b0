//! `RequestBody`: the body that the service reads.

use super::ticket::Ticket;
use crate::error::LimitPassed;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a request. Its limits run while a poll of it is pending.
///
/// ```
/// use http::{Request, Response};
/// use std::convert::Infallible;
/// use wheelwork_http::RequestBody;
///
/// async fn hello(request: Request<RequestBody>) -> Result<Response<String>, Infallible> {
///     Ok(Response::new(format!("hello, {}", request.uri().path())))
/// }
/// ```
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    /// Keeps the request in flight until the body has ended: it may outlast the answer.
    ticket: Option<Ticket>,
}

/// Why a [`RequestBody`] has failed.
///
/// ```
/// use wheelwork_http::{BodyError, Limit};
///
/// fn is_slow_client(error: &BodyError) -> bool {
///     matches!(error, BodyError::Limit(passed) if passed.limit() == Limit::BodyRate)
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// A limit has passed.
    Limit(LimitPassed),
    /// The connection or the stream has failed.
    Hyper(hyper::Error),
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, ticket: &Ticket) -> Self {
        let has_more = !incoming.is_end_stream();
        Self { incoming, ticket: has_more.then(|| ticket.another()) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // After an early answer over HTTP/1, hyper tells the end of a body only with the next request.
        let polled = match self.incoming.is_end_stream() {
            true => Poll::Ready(None),
            false => Pin::new(&mut self.incoming).poll_frame(cx),
        };
        let Some(link) = self.ticket.as_ref().and_then(Ticket::link) else {
            return polled.map_err(BodyError::Hyper);
        };
        match &polled {
            Poll::Pending => {
                if let Some(limit) = link.body_waits(cx.waker()) {
                    return Poll::Ready(Some(Err(BodyError::Limit(LimitPassed(limit)))));
                }
            }
            Poll::Ready(Some(Ok(frame))) => {
                link.body_came(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(_) => link.body_came(0),
        }
        let has_ended = !matches!(polled, Poll::Pending | Poll::Ready(Some(Ok(_))));
        if has_ended || self.incoming.is_end_stream() {
            self.ticket = None;
        }
        polled.map_err(BodyError::Hyper)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(link) = self.ticket.as_ref().and_then(Ticket::link) {
            link.body_dropped();
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(passed) => passed.fmt(f),
            Self::Hyper(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Limit(passed) => Some(passed),
            Self::Hyper(error) => Some(error),
        }
    }
}
