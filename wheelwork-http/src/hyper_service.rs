//! `Hyper`: a service of hyper as one of tower.

use std::task::{Context, Poll};

/// A service of hyper, for [`serve`](crate::serve): for example hyper's `service_fn`.
///
/// Its requests have a [`RequestBody`](crate::RequestBody) in place of hyper's `Incoming`, so that the limits see the
/// body.
///
/// ```
/// use http::{Request, Response};
/// use hyper::service::service_fn;
/// use std::convert::Infallible;
/// use wheelwork_http::{Hyper, Limits, RequestBody, serve};
///
/// async fn hello(_: Request<RequestBody>) -> Result<Response<String>, Infallible> {
///     Ok(Response::new("hello".into()))
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// serve(listener, Hyper(service_fn(hello)), Limits::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hyper<S>(pub S);

impl<S, R> tower_service::Service<R> for Hyper<S>
where
    S: hyper::service::Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}
