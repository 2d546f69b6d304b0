//! The server with one limit, or with none, to compare with. It can shut down, too.

use super::{LIMITS, Which};
use crate::server::or_503;
use axum::Router;
use axum::response::Response;
use futures_util::FutureExt;
use hyper::rt::{Read, Sleep, Timer, Write};
use hyper::service::{Service as HyperService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::{conn::auto, graceful::GracefulShutdown};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tower_service::Service;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{IdlePolicy, IdleStreams};

pub(super) async fn serve(
    listener: TcpListener,
    app: Router,
    timer: HashedWheelTimer,
    limit: Which,
) {
    let mut http = auto::Builder::new(TokioExecutor::new());
    match limit {
        Which::Header => {
            http.http1().timer(timer.clone()).header_read_timeout(LIMITS.header);
        }
        Which::HyperAlone => _ = http.http1().timer(NoTimer).header_read_timeout(LIMITS.header),
        _ => {}
    }
    let (streams, policy) = (IdleStreams::new(&timer), IdlePolicy::new().both(LIMITS.idle));
    let connections = Connections { http, all: GracefulShutdown::new() };
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let (app, timer) = (app.clone(), timer.clone());
        let plain = move |request| app.clone().call(request);
        match limit {
            Which::Idle => match streams.wrap(socket, &policy) {
                Ok(stream) => connections.spawn(stream, service_fn(plain)),
                Err(_) => return, // the timer is stopped
            },
            Which::Request => {
                let limited =
                    move |request| timer.timeout(LIMITS.request, plain(request)).map(or_503);
                connections.spawn(socket, service_fn(limited));
            }
            _ => connections.spawn(socket, service_fn(plain)),
        }
    }
}

type Request = hyper::Request<hyper::body::Incoming>;

struct Connections {
    http: auto::Builder<TokioExecutor>,
    all: GracefulShutdown,
}

impl Connections {
    fn spawn<I, S>(&self, stream: I, service: S)
    where
        TokioIo<I>: Read + Write + Unpin + Send + 'static,
        S: HyperService<Request, Response = Response, Error = Infallible> + Send + 'static,
        S::Future: Send,
    {
        let connection = self.http.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(self.all.watch(connection));
    }
}

/// A timer whose sleeps never end, to see what the header limit costs in hyper itself.
struct NoTimer;

impl Timer for NoTimer {
    fn sleep(&self, _duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Never)
    }

    fn sleep_until(&self, _deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Never)
    }
}

struct Never;

impl Future for Never {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Sleep for Never {}
