//! QUIC: the timers of quinn on a `HashedWheelTimer`.

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, net::UdpSocket, sync::Arc, time::Instant};
use wheelwork::{HashedWheelTimer, future::Sleep};

/// The sockets and tasks of tokio, with this timer. Pass it to `Endpoint::new`.
#[derive(Debug)]
pub struct TimedRuntime(pub HashedWheelTimer);

impl Runtime for TimedRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(QuicTimer(self.0.sleep_until(deadline)))
    }
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }
    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }
    fn now(&self) -> Instant {
        self.0.now()
    }
}

#[derive(Debug)]
struct QuicTimer(Sleep);

impl AsyncTimer for QuicTimer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.reset(deadline);
    }
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(Pin::new(&mut self.0).poll(cx));
        // After a stop every sleep is ready, and quinn would poll again and again.
        if self.0.was_stopped() { Poll::Pending } else { Poll::Ready(()) }
    }
}
