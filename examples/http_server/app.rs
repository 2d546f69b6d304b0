//! What the server answers: one route for each thing that the clients try.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use hyper::body::{Body as HttpBody, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The answer to `GET /`.
pub(crate) const HELLO: &str = "hello";

pub(crate) fn app() -> Router {
    Router::new()
        .route("/", get(hello))
        .route("/never", get(never))
        .route("/echo", post(echo))
        .route("/endless", get(async || Body::new(Endless)))
}

/// Waits once, so that the request's deadline is really armed.
async fn hello() -> &'static str {
    tokio::task::yield_now().await;
    HELLO
}

async fn never() {
    std::future::pending().await
}

async fn echo(body: Bytes) -> Bytes {
    body
}

/// A body that goes on as long as somebody reads it.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static CHUNK: [u8; 16 * 1024] = [b'.'; 16 * 1024];
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&CHUNK)))))
    }
}
