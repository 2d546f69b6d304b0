//! What each kind of client does, and what it must see.

use super::Plan;
use super::shutdown::Shutdown;
use super::verdict::{Span, Verdict};
use super::wire::{Response, Wire};
use crate::app::HELLO;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout_at};

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
const GET_AND_CLOSE: &str = "GET / HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";
const GET_NEVER: &str = "GET /never HTTP/1.1\r\nhost: server\r\n\r\n";
const GET_ENDLESS: &str = "GET /endless HTTP/1.1\r\nhost: server\r\n\r\n";
const HALF_A_HEADER: &str = "GET / HTTP/1.1\r\nhost: ser";
const HALF_A_BODY: &str = "POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: 10\r\n\r\nhello";
const POST_WHEN_READY: &str = "POST /echo HTTP/1.1\r\nhost: server\r\n\
                               expect: 100-continue\r\ncontent-length: 5\r\n\r\n";

const UNAVAILABLE: u16 = 503;

/// The server may have closed, because this busy machine has held up the client for too long.
const CLIENT_WAS_LATE: Verdict = Verdict::Right { late: Duration::ZERO };

/// More than the buffers of both sides can hold.
const MORE_THAN_BUFFERED: usize = 16 * 1024 * 1024;

pub(super) async fn fast(plan: Plan) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let sent = wire.send(GET_AND_CLOSE).await?;
    if let Some(wrong) = not_hello(wire.receive().await) {
        return Ok(wrong);
    }
    Ok(plan.close(&mut wire, sent).await)
}

pub(super) async fn hundred_requests(plan: Plan) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    for _ in 0..100 {
        let due = plan.idle_or_header(&wire, wire.active);
        wire.send(GET).await?;
        if let Some(wrong) = not_hello(wire.receive().await) {
            return Ok(if Instant::now() < due.earliest { wrong } else { CLIENT_WAS_LATE });
        }
    }
    let due = plan.idle_or_header(&wire, wire.active);
    Ok(plan.close(&mut wire, due).await)
}

pub(super) async fn silent(plan: Plan) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let due = wire.active.after(plan.server_limits.idle);
    Ok(plan.close(&mut wire, due).await)
}

pub(super) async fn half_a_header(plan: Plan) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let begun = wire.send(HALF_A_HEADER).await?;
    let due = plan.idle_or_header(&wire, begun);
    Ok(plan.close(&mut wire, due).await)
}

/// Slowloris: never silent, and never done.
pub(super) async fn byte_by_byte(plan: Plan) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let mut bytes = "GET /".bytes().chain(std::iter::repeat(b'.')).map(|byte| [byte]);
    let begun = wire.send(bytes.next().unwrap_or_default()).await?;
    let pace = plan.server_limits.header / 3;
    loop {
        let due = plan.idle_or_header(&wire, begun);
        let next = Instant::now() + pace;
        if let Ok(closed) = timeout_at(next.into(), wire.drain(usize::MAX)).await {
            return Ok(plan.closed(due, closed));
        }
        if next > due.latest + plan.slack {
            return Ok(Verdict::Missed);
        }
        // If it fails, the server has just closed, and the next look finds that.
        let _ = wire.send(bytes.next().unwrap_or_default()).await;
    }
}

pub(super) async fn slow_handler(plan: Plan) -> io::Result<Verdict> {
    unavailable(plan, GET_NEVER).await
}

pub(super) async fn half_a_body(plan: Plan) -> io::Result<Verdict> {
    unavailable(plan, HALF_A_BODY).await
}

/// Sends a request that the server must give up.
async fn unavailable(plan: Plan, request: &str) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let due = wire.send(request).await?.after(plan.server_limits.request);
    Ok(match timeout_at(plan.overdue(due), wire.receive()).await {
        Err(_) => Verdict::Missed,
        Ok(Ok(response)) if response.status == UNAVAILABLE => {
            Verdict::of(due, Instant::now(), plan.slack)
        }
        Ok(other) => Verdict::wrong(format!("instead of a 503: {other:?}")),
    })
}

/// Reads a part of a response after a pause that is too short to be idle. Then reads no more.
pub(super) async fn unread_response(plan: Plan) -> io::Result<Verdict> {
    let idle = plan.server_limits.idle;
    let mut wire = Wire::connect(plan.server).await?;
    let due = wire.send(GET_ENDLESS).await?.after(idle);
    wire.header().await?;
    sleep(idle * 3 / 4).await;
    if let Some(closed) = wire.drain(MORE_THAN_BUFFERED).await {
        return Ok(if closed < due.earliest {
            Verdict::wrong("closed while the response was being read")
        } else {
            CLIENT_WAS_LATE
        });
    }
    sleep(idle + plan.slack).await;
    // The end of what the server has sent shows that it has closed, but not when.
    let closed = wire.drain(MORE_THAN_BUFFERED).await;
    Ok(closed.map_or(Verdict::Missed, |_| Verdict::Right { late: Duration::ZERO }))
}

/// Has a request under way when the server shuts down.
pub(super) async fn under_way(plan: Plan, shutdown: Shutdown) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    let sent = wire.send(POST_WHEN_READY).await?;
    wire.header().await?; // 100: the server waits for the body
    let begun = shutdown.wait().await;
    wire.send(HELLO).await?;
    if let Some(wrong) = not_hello(wire.receive().await) {
        let is_early = sent.earliest.elapsed() < plan.server_limits.request;
        return Ok(if is_early { wrong } else { CLIENT_WAS_LATE });
    }
    Ok(plan.close(&mut wire, begun).await)
}

/// Has a connection without a request when the server shuts down.
pub(super) async fn kept_alive(plan: Plan, shutdown: Shutdown) -> io::Result<Verdict> {
    let mut wire = Wire::connect(plan.server).await?;
    wire.send(GET).await?;
    if let Some(wrong) = not_hello(wire.receive().await) {
        return Ok(wrong);
    }
    let begun = shutdown.wait().await;
    Ok(plan.close(&mut wire, begun).await)
}

/// Comes when the server is gone.
pub(super) async fn refused(plan: Plan) -> io::Result<Verdict> {
    Ok(match Wire::connect(plan.server).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => CLIENT_WAS_LATE,
        other => Verdict::wrong(format!("instead of a refusal: {:?}", other.map(drop))),
    })
}

fn not_hello(response: io::Result<Response>) -> Option<Verdict> {
    match response {
        Ok(Response { status: 200, body }) if body == HELLO.as_bytes() => None,
        other => Some(Verdict::wrong(format!("instead of a 200: {other:?}"))),
    }
}

impl Plan {
    /// When the server must close a connection that waits for a header since `begun`.
    fn idle_or_header(&self, wire: &Wire, begun: Span) -> Span {
        let limits = self.server_limits;
        wire.active.after(limits.idle).or(begun.after(limits.header))
    }

    /// Waits until the server closes the connection.
    async fn close(&self, wire: &mut Wire, due: Span) -> Verdict {
        let closed = timeout_at(self.overdue(due), wire.drain(usize::MAX)).await;
        closed.map_or(Verdict::Missed, |closed| self.closed(due, closed))
    }

    fn closed(&self, due: Span, closed: Option<Instant>) -> Verdict {
        closed.map_or(Verdict::Missed, |at| Verdict::of(due, at, self.slack))
    }
}
