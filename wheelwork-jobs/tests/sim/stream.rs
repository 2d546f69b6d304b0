//! A stream of bytes between a client and the server: packets that pass the network.

use super::net::Wire;
use super::world::{self, Home, Process};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The client's side. Its drop closes the connection.
pub(super) struct Stream {
    sent: UnboundedSender<Vec<u8>>,
    received: UnboundedReceiver<Vec<u8>>,
    left: Vec<u8>,
}

/// The server's side.
pub(super) struct Far {
    pub(super) received: UnboundedReceiver<Vec<u8>>,
    pub(super) sent: UnboundedSender<Vec<u8>>,
}

/// Both sides of a connection.
pub(super) fn connect(wire: &Wire) -> (Stream, Far) {
    let carry = |back| {
        let (near, from) = unbounded_channel();
        let (to, far) = unbounded_channel();
        let carrier = carry_on(wire.clone(), back, from, to);
        world::spawn(Home::of(Process(0)), carrier);
        (near, far)
    };
    let ((sent, requests), (answers, received)) = (carry(false), carry(true));
    (Stream { sent, received, left: Vec::new() }, Far { received: requests, sent: answers })
}

async fn carry_on(
    wire: Wire,
    back: bool,
    mut from: UnboundedReceiver<Vec<u8>>,
    to: UnboundedSender<Vec<u8>>,
) {
    loop {
        let packet = tokio::select! {
            biased;
            () = wire.ended() => return,
            packet = from.recv() => packet,
        };
        // The end of a connection passes as well.
        if wire.pass(back).await.is_err() {
            return;
        }
        let Some(packet) = packet else { return };
        if to.send(packet).is_err() {
            return;
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            match std::task::ready!(self.received.poll_recv(cx)) {
                Some(packet) => self.left = packet,
                None => return Poll::Ready(Ok(())), // the end
            }
        }
        let length = self.left.len().min(buffer.remaining());
        let rest = self.left.split_off(length);
        buffer.put_slice(&self.left);
        self.left = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = self.sent.send(bytes.to_vec());
        Poll::Ready(sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
