//! The judges of the client: servers by hand, and the server over HTTP/2.

use super::Plan;
use super::verdict::{Span, Verdict};
use crate::app::HELLO;
use crate::client::{Client, client};
use axum::body::{self, Body, Bytes};
use axum::http::StatusCode;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// A server's first frame of HTTP/2: settings, without any.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The pool looks for unused connections at most this often.
const POOL_LOOKS_EVERY: Duration = Duration::from_millis(90);

/// Serves one request, and then waits until the client closes the connection.
pub(super) async fn unused(plan: Plan) -> io::Result<Verdict> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let client = plan.client(false);
    let asked = plan.get(&client, listener.local_addr()?, "/");
    let mut stream = listener.accept().await?.0;
    read_request(&mut stream).await?;
    let before = Instant::now();
    stream.write_all(RESPONSE.as_bytes()).await?;
    if let Some(wrong) = asked.await?.not_hello() {
        return Ok(wrong);
    }
    let limit = plan.client_limits.unused;
    let mut due = Span::since(before).after(limit);
    due.latest += limit.max(POOL_LOOKS_EVERY); // it may have looked just before
    let closed = timeout_at(plan.overdue(due), stream.read_u8()).await;
    drop(client);
    Ok(closed.map_or(Verdict::Missed, |_| Verdict::of(due, Instant::now(), plan.slack)))
}

/// Begins to serve HTTP/2, and then says nothing more.
pub(super) async fn frozen(plan: Plan) -> io::Result<Verdict> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let before = Instant::now();
    let asked = plan.get(&plan.client(true), listener.local_addr()?, "/");
    let mut stream = listener.accept().await?.0;
    stream.write_all(&SETTINGS).await?;
    let limits = plan.client_limits;
    let due = Span::since(before).after(limits.ping + limits.pong);
    tokio::spawn(async move { tokio::io::copy(&mut stream, &mut tokio::io::sink()).await });
    plan.judge(due, asked, Result::is_err).await
}

/// Ten requests at once over one HTTP/2 connection, and then one that the server must give up.
pub(super) async fn http2(plan: Plan) -> io::Result<Verdict> {
    let client = plan.client(true);
    for asked in [(); 10].map(|()| plan.get(&client, plan.server, "/")) {
        if let Some(wrong) = asked.await?.not_hello() {
            return Ok(wrong);
        }
    }
    let before = Instant::now();
    let asked = plan.get(&client, plan.server, "/never");
    let due = Span::since(before).after(plan.server_limits.request);
    plan.judge(due, asked, |response| matches!(response, Ok((StatusCode::SERVICE_UNAVAILABLE, _))))
        .await
}

type Response = Result<(StatusCode, Bytes), Box<dyn Error + Send + Sync>>;

/// The answer to a request, and when it was there.
#[derive(Debug)]
struct Got {
    response: Response,
    at: Instant,
}

impl Got {
    fn not_hello(&self) -> Option<Verdict> {
        let is_hello =
            matches!(&self.response, Ok((StatusCode::OK, body)) if body == HELLO.as_bytes());
        (!is_hello).then(|| Verdict::wrong(format!("instead of a 200: {self:?}")))
    }
}

impl Plan {
    fn client(&self, http2_only: bool) -> Client {
        client(&self.timer, self.kept, http2_only)
    }

    /// Sends a request, on the runtime without a timer.
    fn get(&self, client: &Client, server: SocketAddr, path: &str) -> JoinHandle<Got> {
        let (client, uri) = (client.clone(), format!("http://{server}{path}"));
        self.runtime.spawn(async move {
            let response = async {
                let (parts, body) = client.get(uri.parse()?).await?.into_parts();
                Ok((parts.status, body::to_bytes(Body::new(body), usize::MAX).await?))
            };
            Got { response: response.await, at: Instant::now() }
        })
    }

    /// Judges the answer to a request.
    async fn judge(
        &self,
        due: Span,
        asked: JoinHandle<Got>,
        is_right: impl Fn(&Response) -> bool,
    ) -> io::Result<Verdict> {
        Ok(match timeout_at(self.overdue(due), asked).await {
            Err(_) => Verdict::Missed,
            Ok(got) => match got? {
                Got { response, at } if is_right(&response) => Verdict::of(due, at, self.slack),
                other => Verdict::wrong(format!("instead of what it must see: {other:?}")),
            },
        })
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
