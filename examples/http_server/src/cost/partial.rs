//! The server without limits and without a timer, to compare with. It can shut down, too.

use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::{conn::auto, graceful::GracefulShutdown};
use tokio::net::TcpListener;
use tower_service::Service;

pub(super) async fn serve(listener: TcpListener, app: Router) {
    let http = auto::Builder::new(TokioExecutor::new());
    let connections = GracefulShutdown::new();
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let app = app.clone();
        let service = service_fn(move |request| app.clone().call(request));
        let connection = http.serve_connection(TokioIo::new(socket), service).into_owned();
        tokio::spawn(connections.watch(connection));
    }
}
