//! An HTTP server on axum and hyper that ends silent connections, slow headers and slow handlers.
//!
//! It needs no timer of the runtime: `enable_io` is enough.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::{conn::auto, graceful::GracefulShutdown};
use std::pin::pin;
use std::time::Duration;
use tokio::net::TcpListener;
use tower_service::Service;
use wheelwork::HashedWheelTimer;
use wheelwork::future::TimeoutError;
use wheelwork::idle::{IdlePolicy, IdleStreams};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A connection is closed if no byte flows for this long.
    pub idle: Duration,
    /// HTTP/1: a connection is closed this long after the first byte of a header, or after a response,
    /// if the (next) header is not complete.
    pub header: Duration,
    /// A request is answered with 503 if its handler takes longer.
    pub request: Duration,
    /// At the end, requests under way have this long to complete.
    pub shutdown: Duration,
}

/// How soon to accept again after an error. The usual one is that there is no free descriptor.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Serves until `shutdown` is ready, and then until the requests under way have completed.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    timer: HashedWheelTimer,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Result<(), TimeoutError> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(timer.clone()).header_read_timeout(limits.header);
    let (streams, policy) = (IdleStreams::new(&timer), IdlePolicy::new().both(limits.idle));
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let Ok((socket, _)) = accepted else {
            let mut pause = timer.sleep(ACCEPT_AGAIN);
            (&mut pause).await;
            if pause.was_stopped() {
                break; // this loop would spin
            }
            continue;
        };
        let _ = socket.set_nodelay(true); // only slower without
        let Ok(stream) = streams.wrap(socket, &policy) else { break }; // the timer is stopped
        let (app, timer) = (app.clone(), timer.clone());
        let service = service_fn(move |request| {
            timer.timeout(limits.request, app.clone().call(request)).map(or_503)
        });
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(connections.watch(connection));
    }
    drop(listener);
    timer.timeout(limits.shutdown, connections.shutdown()).await
}

/// The answer of a handler, or 503 if it took too long.
pub fn or_503<E>(answer: Result<Result<Response, E>, TimeoutError>) -> Result<Response, E> {
    answer.unwrap_or_else(|_| Ok(StatusCode::SERVICE_UNAVAILABLE.into_response()))
}
