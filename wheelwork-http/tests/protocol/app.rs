//! What the servers of the tests answer.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wheelwork_http::RequestBody;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Answer = Response<BoxBody<Bytes, Failure>>;

thread_local! {
    /// Handlers of `/never` that were dropped. Each test has a thread of its own.
    pub(crate) static DROPPED: Cell<u32> = const { Cell::new(0) };
    /// Bodies that have failed in the handler of `/echo`.
    pub(crate) static FAILED: Cell<u32> = const { Cell::new(0) };
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

pub(crate) async fn app(request: Request<RequestBody>) -> Result<Answer, Failure> {
    if request.method() == Method::CONNECT {
        tokio::spawn(echo_upgraded(request));
        return Ok(full(""));
    }
    Ok(match request.uri().path() {
        "/echo" => {
            let Ok(body) = request.into_body().collect().await else {
                FAILED.set(FAILED.get() + 1);
                return Err("no whole body".into());
            };
            let sum = body.trailers().and_then(|trailers| trailers.get("sum").cloned());
            let mut answer = full(body.to_bytes());
            if let Some(sum) = sum {
                answer.headers_mut().insert("sum-was", sum);
            }
            answer
        }
        "/later" => {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            full("later")
        }
        "/never" => {
            let _guard = Guard;
            std::future::pending().await
        }
        // Neither reads the body.
        "/refuse" => status(StatusCode::FORBIDDEN),
        "/unmodified" => status(StatusCode::NOT_MODIFIED),
        "/continue" => status(StatusCode::CONTINUE),
        "/fail" => return Err("no answer".into()),
        "/chunks" => streamed([Ok(data("one")), Ok(data("two"))]),
        "/broken" => streamed([Ok(data("one")), Err("broken".into())]),
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("sum", "6".parse()?);
            let mut answer = streamed([Ok(data("one")), Ok(Frame::trailers(trailers))]);
            answer.headers_mut().insert("trailer", "sum".parse()?);
            answer
        }
        "/upgrade" => {
            tokio::spawn(echo_upgraded(request));
            let mut answer = status(StatusCode::SWITCHING_PROTOCOLS);
            answer.headers_mut().insert("upgrade", "echo".parse()?);
            answer.headers_mut().insert("connection", "upgrade".parse()?);
            answer
        }
        _ => full("hello"),
    })
}

fn full(body: impl Into<Bytes>) -> Answer {
    Response::new(Full::new(body.into()).map_err(|never| match never {}).boxed())
}

fn status(status: StatusCode) -> Answer {
    let mut answer = full("");
    *answer.status_mut() = status;
    answer
}

fn streamed<const N: usize>(frames: [Result<Frame<Bytes>, Failure>; N]) -> Answer {
    Response::new(Streamed(frames.into()).boxed())
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

/// Echoes until the client ends its half, and then ends the other one.
async fn echo_upgraded(request: Request<RequestBody>) {
    let mut io: TokioIo<Upgraded> = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = io.read(&mut bytes).await {
        if io.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
    let _ = io.shutdown().await;
}

/// A body of unknown length.
struct Streamed(VecDeque<Result<Frame<Bytes>, Failure>>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        Poll::Ready(self.0.pop_front())
    }
}
