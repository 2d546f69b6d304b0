//! The answers of limits.

use crate::limit::Limit;
use crate::limits::Limits;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

/// gRPC's DEADLINE_EXCEEDED.
const DEADLINE_EXCEEDED: HeaderValue = HeaderValue::from_static("4");

/// The answer to a request whose limit has passed. `call` is the content type of a call of gRPC.
pub(super) fn answer(limit: Limit, limits: &Limits, call: Option<&'static str>) -> Response<()> {
    let mut response = Response::new(());
    if let Some(call) = call {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(call));
        response.headers_mut().insert("grpc-status", DEADLINE_EXCEEDED);
    } else if limit == Limit::Handler {
        *response.status_mut() = limits.handler_status;
    } else {
        // RFC 9110 section 15.5.9. HTTP/2 has no such header, and hyper removes it.
        *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
