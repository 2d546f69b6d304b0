//! A runtime whose other threads have not yet come to a socket when its limit is due.

use crate::app::app;
use crate::world::{Client, SECOND, TICK, limits, settle};
use hyper::service::service_fn;
use std::future::{Ready, ready};
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Hyper, Limit, Listener, Peer, Plain, RequestBody, Socket, serve};

/// Tells nothing of its bytes in so many reads.
struct Behind {
    stream: TcpStream,
    reads: Arc<AtomicU32>,
}

struct Accepts {
    listener: TcpListener,
    reads: Arc<AtomicU32>,
}

impl Listener for Accepts {
    type Handshake = Plain<Behind>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<Behind>>, Peer)> {
        let (stream, address) = self.listener.accept().await?;
        Ok((ready(Ok(Behind { stream, reads: self.reads.clone() })), Peer::Tcp(address)))
    }
}

impl Socket for Behind {
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
        match self.reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Poll::Pending,
            Err(_) => Pin::new(&mut self.stream).poll_read(cx, buffer),
        }
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
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[test]
fn what_waits_in_the_system_is_read_before_a_verdict() {
    const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let clock = ManualClock::new();
        let timer = HashedWheelTimer::builder().tick_duration(TICK).clock(clock.clone());
        let timer = timer.build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let reads = Arc::new(AtomicU32::new(0));
        let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
        let accepts = Accepts { listener, reads: reads.clone() };
        let serving = serve(accepts, service, limits()).timer(&timer);
        let server = serving.server();
        tokio::spawn(async { serving.await.unwrap() });
        for (first, rest) in [("", GET), (&GET[..20], &GET[20..]), (GET, GET)] {
            let mut client = Client { stream: TcpStream::connect(address).await.unwrap() };
            settle().await;
            if !first.is_empty() {
                client.send(first).await;
                client.received();
            }
            client.send_at_once(rest);
            reads.store(20, Ordering::Relaxed);
            clock.advance_in_one_jump(90 * SECOND);
            settle().await;
            assert!(client.text().ends_with("hello"), "{first:?}");
            drop(client);
            settle().await;
        }
        assert_eq!(Limit::EVERY.map(|limit| server.cuts(limit)), [0; Limit::EVERY.len()]);
    });
}
