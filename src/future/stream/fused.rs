//! A stream that is not polled after its end.

use futures_core::Stream;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The source of an adapter. After its end, a poll finds the end again.
    #[derive(Debug)]
    pub(super) struct Fused<S> {
        #[pin]
        stream: S,
        ended: bool,
    }
}

impl<S> Fused<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, ended: false }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> Stream for Fused<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if *this.ended {
            return Poll::Ready(None);
        }
        let polled = this.stream.poll_next(cx);
        *this.ended = matches!(polled, Poll::Ready(None));
        polled
    }
}
