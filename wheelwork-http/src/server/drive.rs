//! `Drive`: the task of a connection. It finds the protocol, runs hyper's connection, and acts on limits.

use super::shared::Shared;
use crate::conn::{Conn, Flags, Limited, Member, PingTimer, Stage, Turn, UNSTAMPED};
use crate::cut::Effect;
use crate::limit::Limit;
use crate::listener::{Handshake, Socket};
use crate::request::{App, Executor, Respond};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// RFC 9113 section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Http1<I, S> = http1::UpgradeableConnection<TokioIo<Limited<I>>, Respond<S>>;
type Http2<I, S> = http2::Connection<TokioIo<Limited<I>>, Respond<S>, Executor>;

pin_project! {
    /// The task of a connection.
    pub(super) struct Drive<H, S>
    where
        H: Handshake,
        S: App,
    {
        conn: Arc<Conn>,
        turn: Turn,
        #[pin]
        protocol: Protocol<H, S>,
    }
}

pin_project! {
    #[project = ProtocolNow]
    enum Protocol<H, S>
    where
        H: Handshake,
        S: App,
    {
        Handshake { #[pin] handshake: H::Future, member: Option<Member>, parts: Option<Parts<S>> },
        Detect { stream: Option<Limited<H::Socket>>, first: Option<Vec<u8>>, parts: Option<Parts<S>> },
        Http1 { #[pin] http: Http1<H::Socket, S> },
        // Boxed: it is larger, and rarer.
        Http2 { http: Pin<Box<Http2<H::Socket, S>>> },
        Ended,
    }
}

/// What a connection needs until its protocol is known.
struct Parts<S> {
    shared: Arc<Shared>,
    service: S,
}

impl<H: Handshake, S: App> Drive<H, S> {
    pub(super) fn new(
        shared: Arc<Shared>,
        handshake: H::Future,
        member: Member,
        service: S,
    ) -> Self {
        let conn = member.conn.clone();
        let parts = Some(Parts { shared, service });
        let protocol = Protocol::Handshake { handshake, member: Some(member), parts };
        Self { conn, turn: Turn::default(), protocol }
    }

    fn poll_protocol(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut this = self.as_mut().project();
            let next = match this.protocol.as_mut().project() {
                ProtocolNow::Handshake { handshake, member, parts } => {
                    let Ok(socket) = ready!(handshake.poll(cx)) else { return Poll::Ready(()) };
                    let (Some(member), Some(known)) = (member.take(), parts.as_ref()) else {
                        return Poll::Ready(());
                    };
                    if let Some(peer) = socket.peer() {
                        if !known.shared.admits(&peer, &this.conn.peer()) {
                            return Poll::Ready(());
                        }
                        this.conn.set_peer(peer);
                    }
                    let stream = Some(Limited::new(socket, member));
                    Protocol::Detect { stream, first: None, parts: parts.take() }
                }
                ProtocolNow::Detect { stream, first, parts } => {
                    let Some(limited) = stream else { return Poll::Ready(()) };
                    let Ok(is_http2) = ready!(poll_detect(limited, first, cx)) else {
                        return Poll::Ready(());
                    };
                    let (Some(mut limited), Some(parts)) = (stream.take(), parts.take()) else {
                        return Poll::Ready(());
                    };
                    limited.begin(first.take().unwrap_or_default(), is_http2);
                    begin(parts, this.conn, limited, is_http2)
                }
                ProtocolNow::Http1 { http } => {
                    let _ = ready!(http.poll(cx));
                    if !this.conn.has(Flags::TUNNEL) {
                        // Whatever the service has answered, it may have the socket now.
                        this.conn.become_tunnel();
                    }
                    return Poll::Ready(());
                }
                ProtocolNow::Http2 { http } => {
                    let ended = ready!(http.as_mut().poll(cx));
                    if ended.is_err_and(|error| error.is_timeout()) {
                        this.conn.report(Limit::Ping, Effect::Close);
                    }
                    return Poll::Ready(());
                }
                ProtocolNow::Ended => return Poll::Ready(()),
            };
            this.protocol.set(next);
        }
    }

    /// Acts on limits. Returns true if the connection is to be closed now.
    #[cold]
    fn attend(self: Pin<&mut Self>) -> bool {
        let mut this = self.project();
        let verdict = this.conn.attend();
        if verdict.close_softly {
            match this.protocol.as_mut().project() {
                ProtocolNow::Http1 { http } => http.graceful_shutdown(),
                ProtocolNow::Http2 { http } => http.as_mut().graceful_shutdown(),
                _ => {}
            }
        }
        verdict.close.is_some()
    }

    /// Lets hyper poll the socket, which takes its leave: it says why it closes, or forgets what was not sent.
    #[cold]
    fn take_leave(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let this = self.project();
        let limit = this.conn.aborted_by();
        let is_told = matches!(limit, Limit::Header | Limit::Response | Limit::ResponseRate);
        match this.protocol.project() {
            ProtocolNow::Http1 { http } if is_told => {
                this.conn.set(Flags::FAREWELL);
                let _ = http.poll(cx);
            }
            // RFC 9113 section 6.8: each connection should end with GOAWAY.
            ProtocolNow::Http2 { http } => {
                this.conn.set(Flags::FAREWELL);
                let _ = http.as_mut().poll(cx);
            }
            _ => {}
        }
    }
}

/// Begins HTTP/1 or HTTP/2.
fn begin<H: Handshake, S: App>(
    Parts { shared, service }: Parts<S>,
    conn: &Arc<Conn>,
    limited: Limited<H::Socket>,
    is_http2: bool,
) -> Protocol<H, S> {
    let stage = if is_http2 { Stage::Http2 } else { Stage::Http1 };
    conn.begin_protocol(stage);
    let io = TokioIo::new(limited);
    let respond = Respond::new(conn.clone(), service);
    if is_http2 {
        let mut http2 = shared.http2.clone();
        http2.timer(PingTimer::new(conn));
        let http = http2.serve_connection(io, respond);
        Protocol::Http2 { http: Box::pin(http) }
    } else {
        let http = shared.http1.serve_connection(io, respond).with_upgrades();
        Protocol::Http1 { http }
    }
}

/// Reads until the first bytes tell whether they are HTTP/2's preface.
fn poll_detect<S: Socket>(
    limited: &mut Limited<S>,
    first: &mut Option<Vec<u8>>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    loop {
        let mut bytes = [0; PREFACE.len()];
        let known = first.as_ref().map_or(0, Vec::len);
        let mut buffer = ReadBuf::new(&mut bytes[known..]);
        ready!(Pin::new(&mut *limited).poll_read(cx, &mut buffer))?;
        let read = buffer.filled();
        if read.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let all = first.get_or_insert_default();
        all.extend_from_slice(read);
        if !PREFACE.starts_with(all) {
            return Poll::Ready(Ok(false));
        }
        if all.len() == PREFACE.len() {
            return Poll::Ready(Ok(true));
        }
    }
}

impl<H: Handshake, S: App> Future for Drive<H, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Protocol::Handshake { .. } = &self.protocol {
            // Limits find the task by its waker. It is the same one for the life of a task of tokio.
            self.conn.register(cx.waker());
        }
        // A tunnel has this task until hyper gives the socket away, which may wait for the body of the request.
        let is_tunnel = self.conn.has(Flags::TUNNEL);
        let news = if is_tunnel { Flags::TUNNEL_NEWS } else { Flags::NEWS };
        if self.conn.has(news | Flags::ABORT) {
            let is_aborted = self.conn.has(Flags::ABORT);
            let this = self.as_mut().project();
            let is_over = is_aborted
                || this.turn.poll_for(this.conn, cx).is_ready()
                    && if is_tunnel { this.conn.attend_tunnel() } else { self.as_mut().attend() };
            if is_over {
                self.as_mut().take_leave(cx);
                self.project().protocol.set(Protocol::Ended);
                return Poll::Ready(());
            }
        }
        let polled = self.as_mut().poll_protocol(cx);
        self.conn.polls.fetch_add(1, Ordering::Relaxed);
        if polled.is_pending() && self.conn.header_since.load(Ordering::Relaxed) == UNSTAMPED {
            self.conn.stamp_header();
        }
        polled
    }
}
