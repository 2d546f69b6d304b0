//! `ResponseBody`: the body that hyper sends.

use super::chunk::Chunk;
use super::ticket::Ticket;
use crate::error::{BoxError, LimitPassed};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The body of a response. It keeps the request in flight until hyper drops it.
    pub(crate) struct ResponseBody<B> {
        // `None` for the answer of a limit.
        #[pin]
        body: Option<B>,
        is_http2: bool,
        ticket: Ticket,
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn new(body: Option<B>, is_http2: bool, ticket: Ticket) -> Self {
        Self { body, is_http2, ticket }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Chunk<B::Data>;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let this = self.project();
        let Some(body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
        if let Some(limit) = this.ticket.passed() {
            return Poll::Ready(Some(Err(LimitPassed(limit).into())));
        }
        let Some(frame) = ready!(body.poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.map_err(Into::into)?;
        let chunk = |data| match *this.is_http2 {
            true => Chunk::counted(data, this.ticket),
            false => Chunk::new(data),
        };
        Poll::Ready(Some(Ok(frame.map_data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
