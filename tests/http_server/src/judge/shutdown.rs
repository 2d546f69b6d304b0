//! Brings the server's shutdown to the clients that wait for it.

use super::verdict::Span;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// A client's part.
#[derive(Clone)]
pub(super) struct Shutdown {
    /// Each client drops its own when it is ready, or has failed.
    not_ready: mpsc::Sender<()>,
    begun: watch::Receiver<Option<Instant>>,
}

/// The other part.
pub(super) struct Orders {
    not_ready: mpsc::Receiver<()>,
    begun: watch::Sender<Option<Instant>>,
}

impl Shutdown {
    pub(super) fn new() -> (Self, Orders) {
        let (not_ready, ready) = mpsc::channel(1);
        let (begin, begun) = watch::channel(None);
        (Self { not_ready, begun }, Orders { not_ready: ready, begun: begin })
    }

    /// Says that this client is ready, and waits until the shutdown has begun. Returns when that was.
    pub(super) async fn wait(self) -> Span {
        let Self { not_ready, mut begun } = self;
        drop(not_ready);
        let began = begun.wait_for(Option::is_some).await.ok().and_then(|began| *began);
        Span::since(began.unwrap_or_else(Instant::now))
    }
}

impl Orders {
    /// Waits until all clients are ready. Then tells the server, and them.
    pub(super) async fn begin(mut self, server: oneshot::Sender<()>) {
        while self.not_ready.recv().await.is_some() {}
        let now = Instant::now();
        // Each fails only if the receivers have ended already.
        let _ = server.send(());
        let _ = self.begun.send(Some(now));
    }
}
