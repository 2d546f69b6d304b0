//! `LocalTimeout`: a future with a limit.

use super::sleep::LocalSleep;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// The future was not ready before its limit.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Elapsed;
///
/// fn reply(answer: Result<String, Elapsed>) -> String {
///     answer.unwrap_or_else(|elapsed| format!("sorry: {elapsed}"))
/// }
/// # assert_eq!(reply(Ok("42".into())), "42");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has elapsed")]
#[non_exhaustive]
pub struct Elapsed;

pin_project! {
    /// A future with a limit. Created by [`LocalTimer::timeout`](super::LocalTimer::timeout) and
    /// [`timeout_at`](super::LocalTimer::timeout_at). It drops the future when it is dropped itself, not at the
    /// deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{future::Ready, time::Duration};
    /// use wheelwork::wheel::{LocalTimeout, LocalTimer};
    ///
    /// struct Request {
    ///     reply: LocalTimeout<Ready<u32>>,
    /// }
    /// # let timer = LocalTimer::new();
    /// # let reply = timer.timeout(Duration::from_secs(2), std::future::ready(7));
    /// # assert_eq!(Request { reply }.reply.into_inner().into_inner(), 7);
    /// ```
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is polled"]
    pub struct LocalTimeout<F> {
        #[pin]
        pub(super) future: F,
        pub(super) limit: LocalSleep,
    }
}

impl<F> LocalTimeout<F> {
    /// The instant until which the future may complete.
    pub fn deadline(&self) -> Instant {
        self.limit.deadline()
    }

    /// Returns the future without its limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for LocalTimeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => this.limit.poll_ready(cx).map(|()| Err(Elapsed)),
        }
    }
}
