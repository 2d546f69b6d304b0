//! `App`: the services that a server takes.

use super::request_body::RequestBody;
use crate::error::BoxError;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

/// The services that a server takes: each tower service of a [`RequestBody`] that can be cloned and sent, with any
/// body as its response. It has a blanket implementation.
pub trait App:
    Service<
        Request<RequestBody>,
        Response = Response<Self::Body>,
        Error: Into<BoxError> + Send,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> App for S
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Body = B;
}
