//! An axum server with every limit. Copy this file.
//!
//! It needs no timer of the runtime: `enable_io` is enough.

use axum::Router;
use axum::response::Html;
use axum::routing::{get, post};
use std::time::Duration;
use tokio::net::TcpListener;
use wheelwork_http::{Cut, Effect, Limits, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    run(listener, async { drop(tokio::signal::ctrl_c().await) }).await
}

async fn run(
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn std::error::Error>> {
    let app = Router::new()
        .route("/", get(async || Html("<p>hello</p>")))
        .route("/upload", post(async |body: String| format!("{} bytes", body.len())))
        .route("/poll", get(poll));
    let limits = Limits::default().handler(Duration::from_secs(10)).connections(50_000);
    // A long poll may take longer than other requests.
    let long_poll = limits.for_request().handler(Duration::from_secs(120));
    let report = serve(listener, app, limits)
        .limits_for(move |request| (request.uri().path() == "/poll").then_some(long_poll))
        .on_cut(log)
        .with_graceful_shutdown(stop)
        .await?;
    for peer in report.cut {
        println!("{peer} still had a request at the end");
    }
    Ok(())
}

/// Answers when there is something to say.
async fn poll() -> &'static str {
    "something"
}

/// A connection that was merely idle or old is no news.
fn log(cut: &Cut<'_>) {
    if cut.effect != Effect::SoftClose {
        println!("{}: {} after {:?}", cut.peer, cut.limit, cut.open_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn it_answers_and_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            run(listener, async { drop(stopped.await) }).await.map_err(|error| error.to_string())
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = "POST /upload HTTP/1.1\r\nhost: server\r\ncontent-length: 3\r\n\r\nabc";
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let read = client.read(&mut answer).await.unwrap();
        assert!(answer[..read].ends_with(b"3 bytes"));
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
    }
}
