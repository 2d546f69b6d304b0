//! What the servers of the tests answer.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Collected, Full, combinators::BoxBody};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use wheelwork_http::{BodyError, Limits, OwnLimits, Peer, RequestBody};

thread_local! {
    /// The bytes that were taken from `/endless`, and by `half:1`.
    pub(crate) static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// What `/accept` has read.
    pub(crate) static ACCEPTED: Cell<Option<Collected<Bytes>>> = const { Cell::new(None) };
    /// Lets `/late` read, and a tunnel of `late` write.
    pub(crate) static READS: Arc<Notify> = Arc::default();
    /// What `/keep-own` has kept: each test has a thread of its own.
    pub(crate) static KEPT: Cell<Option<OwnLimits>> = const { Cell::new(None) };
}

/// More than a pipe of the tests or a window holds.
pub(crate) const MUCH: usize = 200_000;

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(crate) async fn app(request: Request<RequestBody>) -> Result<Answer, BodyError> {
    if request.method() == http::Method::CONNECT {
        let authority = request.uri().to_string();
        tokio::spawn(async move {
            let io = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            through(authority.trim_end_matches(":1"), io).await;
        });
        return Ok(full(""));
    }
    Ok(match request.uri().path() {
        "/never" => std::future::pending().await,
        "/echo" => {
            let body = request.into_body().collect().await?.to_bytes();
            full(format!("{} bytes", body.len()))
        }
        "/echo-never" => {
            request.into_body().collect().await?;
            std::future::pending().await
        }
        path @ ("/give-up" | "/keep") => {
            // Waits for the body once, and then drops it, or not.
            let is_dropped = path == "/give-up";
            let mut body = request.into_body();
            std::future::poll_fn(|cx| {
                let _ = Pin::new(&mut body).poll_frame(cx);
                Poll::Ready(())
            })
            .await;
            let _body = (!is_dropped).then_some(body);
            std::future::pending().await
        }
        "/early" => {
            // The head is sent before the body has come.
            tokio::spawn(async { request.into_body().collect().await.map(drop) });
            Response::new(Quiet.boxed())
        }
        "/early-own" => {
            // The same, when the body is already awaited, and with limits for the rest.
            tokio::spawn(async { request.into_body().collect().await.map(drop) });
            tokio::task::yield_now().await;
            let mut answer = Response::new(Quiet.boxed());
            let own = Limits::none().for_request().body(Duration::from_secs(5));
            answer.extensions_mut().insert(own);
            answer
        }
        "/accept" => {
            // The whole answer is sent before the body has come.
            tokio::spawn(async { ACCEPTED.set(request.into_body().collect().await.ok()) });
            full("accepted")
        }
        "/endless" => Response::new(Endless.boxed()),
        "/both" | "/both-big" => {
            // The answer is sent while the body comes.
            let is_endless = request.uri().path() == "/both";
            tokio::spawn(async { request.into_body().collect().await.map(drop) });
            if is_endless { Response::new(Endless.boxed()) } else { full(vec![b'.'; 100_000]) }
        }
        "/messages" => Response::new(Messages.boxed()),
        "/paced" => Response::new(Paced(false).boxed()),
        "/own" => {
            let mut answer = Response::new(Endless.boxed());
            let own = Limits::none().for_request().response(Duration::from_secs(5));
            answer.extensions_mut().insert(own);
            answer
        }
        "/slower" => {
            let seconds = request.uri().query().unwrap().parse().unwrap();
            let limit = Duration::from_secs(seconds);
            let own = request.extensions().get::<OwnLimits>().unwrap();
            assert!(own.change(|limits| limits.handler(limit).body(limit)));
            assert!(own.get().is_some());
            request.into_body().collect().await?;
            std::future::pending().await
        }
        "/keep-own" => {
            KEPT.set(request.extensions().get::<OwnLimits>().cloned());
            full("")
        }
        "/hold" => {
            // Another task has the body, and does not read it.
            tokio::spawn(async move {
                let _body = request.into_body();
                std::future::pending::<()>().await
            });
            std::future::pending().await
        }
        "/late" => {
            READS.with(Arc::clone).notified().await;
            let body = request.into_body().collect().await?.to_bytes();
            full(format!("{} bytes", body.len()))
        }
        "/quiet" => Response::new(Quiet.boxed()),
        "/big" => full(vec![b'.'; 100_000]),
        // More than the kernel holds, in one chunk.
        "/huge" => full(vec![b'.'; 20_000_000]),
        "/upgrade" => upgrade(request),
        "/late-upgrade" => {
            READS.with(Arc::clone).notified().await;
            upgrade(request)
        }
        "/peer" => full(request.extensions().get::<Peer>().unwrap().to_string()),
        _ => full("hello"),
    })
}

pub(crate) fn full(body: impl Into<Bytes>) -> Answer {
    Response::new(Full::new(body.into()).boxed())
}

/// Switches to the protocol of the query, or to one that echoes.
fn upgrade(mut request: Request<RequestBody>) -> Answer {
    let kind = request.uri().query().unwrap_or_default().to_owned();
    let mut answer = full("");
    *answer.status_mut() = match kind == "refused" {
        true => StatusCode::FORBIDDEN,
        false => StatusCode::SWITCHING_PROTOCOLS,
    };
    tokio::spawn(async move {
        let upgraded = match kind == "kept" {
            true => hyper::upgrade::on(&mut request).await, // nobody reads its body
            false => hyper::upgrade::on(request).await,
        };
        // Over HTTP/2 there is none.
        if let Ok(upgraded) = upgraded {
            through(&kind, TokioIo::new(upgraded)).await;
        }
    });
    answer.headers_mut().insert("upgrade", "echo".parse().unwrap());
    answer.headers_mut().insert("connection", "upgrade".parse().unwrap());
    answer
}

/// Plays the other end of a tunnel.
async fn through(kind: &str, io: TokioIo<Upgraded>) {
    match kind {
        "endless" => write_on(io).await,
        "half" => read_on(io).await,
        "after" => write_after(io, 1).await,
        "forever" => write_after(io, usize::MAX).await,
        "late" => write_late(io).await,
        "late-reads" => read_late(io).await,
        _ => echo(io).await,
    }
}

async fn echo(mut io: TokioIo<Upgraded>) {
    let mut byte = [0];
    while io.read_exact(&mut byte).await.is_ok() && io.write_all(&byte).await.is_ok() {}
}

async fn write_on(mut io: TokioIo<Upgraded>) {
    // hyper takes each write as a whole, however little the client's window lets through.
    while io.write_all(&[b'.'; 1000]).await.is_ok() {}
}

/// Ends its own direction, and counts what still comes.
async fn read_on(mut io: TokioIo<Upgraded>) {
    io.shutdown().await.unwrap();
    while let Ok(read @ 1..) = io.read(&mut [0; 1024]).await {
        TAKEN.set(TAKEN.get() + read);
    }
}

/// Waits for the end of the client's direction, and then writes `MUCH` at once, so often.
async fn write_after(mut io: TokioIo<Upgraded>, times: usize) {
    while matches!(io.read(&mut [0; 1024]).await, Ok(1..)) {}
    let bytes = vec![b'.'; MUCH];
    for _ in 0..times {
        if io.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = io.shutdown().await;
}

/// Writes a byte whenever `READS` says so.
async fn write_late(mut io: TokioIo<Upgraded>) {
    while io.write_all(b".").await.is_ok() {
        READS.with(Arc::clone).notified().await;
    }
}

/// Reads a byte whenever `READS` says so.
async fn read_late(mut io: TokioIo<Upgraded>) {
    while io.read_exact(&mut [0]).await.is_ok() {
        READS.with(Arc::clone).notified().await;
    }
}

/// A body that goes on as long as somebody reads it.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static CHUNK: [u8; 16 * 1024] = [b'.'; 16 * 1024];
        TAKEN.set(TAKEN.get() + CHUNK.len());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&CHUNK)))))
    }
}

/// Small messages without an end.
struct Messages;

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"0123456789")))))
    }
}

/// The same, with a pause before each message, as a file that is read by another thread.
struct Paced(bool);

impl Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 = !self.0;
        if self.0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut Messages).poll_frame(cx)
    }
}

/// A body that never has anything, as that of a stream of events without events.
struct Quiet;

impl Body for Quiet {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
