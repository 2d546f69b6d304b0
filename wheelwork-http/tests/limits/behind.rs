//! A runtime whose other threads have not yet come to a socket when its limit is due, and clients whose bytes come in
//! pieces, just between two reads.

use crate::app::app;
use crate::world::{Client, SECOND, TICK, limits, settle};
use hyper::service::service_fn;
use std::future::{self, Ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{
    Hyper, Limit, Limits, Listener, Peer, Plain, RequestBody, Server, Socket, serve,
};

#[derive(Clone, Default)]
struct Faults {
    /// The number of reads in which the socket hides its bytes.
    silent: Arc<AtomicU32>,
    /// Each read brings one byte, and the next one comes only after the read that follows.
    drips: Arc<AtomicBool>,
    /// If not 0: each read brings so many bytes at most, and the next one must wait for a moment.
    piece: Arc<AtomicUsize>,
    /// If not 0: the client has not taken so many bytes, and a shutdown waits for them, as that of TLS does.
    untaken: Arc<AtomicU64>,
}

struct Behind {
    stream: TcpStream,
    faults: Faults,
    has_dripped: bool,
}

struct Accepts {
    listener: TcpListener,
    faults: Faults,
}

impl Listener for Accepts {
    type Handshake = Plain<Behind>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<Behind>>, Peer)> {
        let (stream, address) = self.listener.accept().await?;
        let behind = Behind { stream, faults: self.faults.clone(), has_dripped: false };
        Ok((future::ready(Ok(behind)), Peer::Tcp(address)))
    }
}

impl Socket for Behind {
    fn untaken(&self) -> Option<u64> {
        Some(self.faults.untaken.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0)
    }

    fn has_unread(&self) -> bool {
        self.stream.has_unread()
    }
}

impl AsyncRead for Behind {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let less = |reads: u32| reads.checked_sub(1);
        let silent = &self.faults.silent;
        if silent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Poll::Pending;
        }
        let drips = self.faults.drips.load(Ordering::Relaxed);
        let piece = if drips { 1 } else { self.faults.piece.load(Ordering::Relaxed) };
        if piece == 0 {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        self.has_dripped = !self.has_dripped;
        if !self.has_dripped {
            if !drips {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        let mut bytes = vec![0; piece.min(buffer.remaining())];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        buffer.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Behind {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.untaken().is_some() {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Runs `test` beside a server with such sockets.
fn world_of_faults(
    limits: Limits,
    test: impl AsyncFnOnce(&ManualClock, &Faults, SocketAddr, &Server),
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let (clock, faults, address, server) = start(limits).await;
        test(&clock, &faults, address, &server).await;
    });
}

/// Has no type parameter, so the server is compiled once.
async fn start(limits: Limits) -> (ManualClock, Faults, SocketAddr, Server) {
    let clock = ManualClock::new();
    let timer =
        HashedWheelTimer::builder().tick_duration(TICK).clock(clock.clone()).build().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let faults = Faults::default();
    let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
    let accepts = Accepts { listener, faults: faults.clone() };
    let serving = serve(accepts, service, limits).timer(&timer);
    let server = serving.server();
    tokio::spawn(async { serving.await.unwrap() });
    (clock, faults, address, server)
}

#[test]
fn what_waits_in_the_system_is_read_before_a_verdict() {
    const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
    world_of_faults(limits(), async |clock, faults, address, server| {
        for (first, rest) in [("", GET), (&GET[..20], &GET[20..]), (GET, GET)] {
            let mut client = Client { stream: TcpStream::connect(address).await.unwrap() };
            settle().await;
            if !first.is_empty() {
                client.send(first).await;
                client.received();
            }
            client.send_at_once(rest);
            faults.silent.store(20, Ordering::Relaxed);
            clock.advance_in_one_jump(90 * SECOND);
            settle().await;
            assert!(client.text().ends_with("hello"), "{first:?}");
            drop(client);
            settle().await;
        }
        assert_eq!(Limit::EVERY.map(|limit| server.cuts(limit)), [0; Limit::EVERY.len()]);
    });
}

/// Whenever the server has read all, the next byte has just come. It came too late for the verdict.
#[test]
fn a_client_that_always_has_more_does_not_put_the_verdict_off() {
    const POST: &str = "POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: 100000\r\n\r\n";
    let limits = Limits::none().body_total(10 * SECOND);
    world_of_faults(limits, async |clock, faults, address, server| {
        let mut client = Client { stream: TcpStream::connect(address).await.unwrap() };
        client.send(POST).await;
        faults.drips.store(true, Ordering::Relaxed);
        client.send_at_once([b'.'; 10_000]);
        clock.advance_in_one_jump(10 * SECOND);
        for _ in 0..20 {
            settle().await;
        }
        assert_eq!(server.cuts(Limit::BodyTotal), 1);
        assert!(client.text().starts_with("HTTP/1.1 408 "));
    });
}

/// The service has answered without it. hyper reads once more before it would close the connection, and finds it.
#[test]
fn the_rest_of_a_body_that_nobody_reads_is_no_header() {
    const POST: &str = "POST / HTTP/1.1\r\nhost: server\r\ncontent-length: 3\r\n\r\n";
    /// The bytes that the server reads to find the protocol.
    const FIRST: usize = 24;
    world_of_faults(limits(), async |clock, faults, address, server| {
        let mut client = Client { stream: TcpStream::connect(address).await.unwrap() };
        client.send_at_once([POST, "abc"].concat());
        faults.piece.store(POST.len() - FIRST, Ordering::Relaxed);
        settle().await;
        assert!(client.text().ends_with("hello"));
        clock.advance_in_one_jump(39 * SECOND);
        settle().await;
        assert_eq!((server.cuts(Limit::Header), server.connections()), (0, 1));
        client.send(&POST[..20]).await;
        clock.advance_in_one_jump(11 * SECOND);
        settle().await;
        assert_eq!(server.cuts(Limit::Header), 1, "the next header has its limit");
    });
}

/// While the client takes what was written, the end of TLS may wait. Nothing else is idle for so long.
#[test]
fn a_shutdown_that_waits_has_the_limits_of_a_write() {
    const LAST: &str = "GET / HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";
    world_of_faults(limits(), async |clock, faults, address, server| {
        let mut client = Client { stream: TcpStream::connect(address).await.unwrap() };
        faults.untaken.store(10_000, Ordering::Relaxed);
        client.send(LAST).await;
        assert!(client.text().ends_with("hello"));
        for _ in 0..5 {
            clock.advance_in_one_jump(28 * SECOND);
            faults.untaken.fetch_sub(1000, Ordering::Relaxed);
            settle().await;
            assert_eq!(server.connections(), 1);
        }
        for _ in 0..2 {
            clock.advance_in_one_jump(29 * SECOND); // it has stopped
            settle().await;
        }
        assert!(client.is_closed().await);
        assert_eq!(server.cuts(Limit::Response), 1);
        assert_eq!(Limit::EVERY.map(|limit| server.cuts(limit)).iter().sum::<u64>(), 1);
    });
}
