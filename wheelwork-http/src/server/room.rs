//! What happens when there are too many connections, or no descriptor for another one.

use super::handle::Server;
use super::shared::Shared;
use crate::cut::Effect;
use crate::limit::Limit;
use crate::peer::Peer;
use std::io;
use std::thread;
use std::time::Duration;
use wheelwork::HashedWheelTimer;

/// The first wait after an error of accept, and the longest. Each wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// One call closes up to this part of all connections: enough that the search for them is rare.
const SHARE: usize = 64;

/// How long to wait after errors of accept.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(FIRST_WAIT)
    }

    pub(super) fn reset(&mut self) {
        self.0 = FIRST_WAIT;
    }

    /// Waits after an error, or until a connection ends.
    pub(super) async fn wait(&mut self, shared: &Shared) {
        let wait = self.0;
        self.0 = (2 * wait).min(LONGEST_WAIT);
        tokio::select! {
            () = sleep(&shared.settings.clock.timer, wait) => {}
            () = shared.desk.changed.notified() => {}
        }
    }
}

/// Sleeps on the timer. If that is stopped, its sleeps end at once, so this one goes on on a thread of the runtime.
async fn sleep(timer: &HashedWheelTimer, wait: Duration) {
    let mut sleep = timer.sleep(wait);
    (&mut sleep).await;
    if sleep.was_stopped() {
        let _ = tokio::task::spawn_blocking(move || thread::sleep(wait)).await; // fails with the runtime
    }
}

/// Whether this error concerns one connection, which has ended before it was accepted.
pub(super) fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Whether this error means that there is no descriptor or memory for another connection: EMFILE and ENFILE, on
/// Windows WSAEMFILE.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(23 | 24 | 10_024))
}

/// Closes some connections without requests. Returns true if there are none, and says so unless that was told before.
pub(super) fn make_room(shared: &Shared, was_told: bool) -> bool {
    let server = Server(shared.desk.clone());
    let has_none = server.close_idlest(server.connections() / SHARE + 1) == 0;
    if has_none && !was_told {
        shared.settings.report(Limit::Connections, Effect::Wait, &Peer::Local, Duration::ZERO, 0);
    }
    has_none
}

/// Waits until there is room for one more connection.
pub(super) async fn wait_for_room(shared: &Shared) {
    let Some(most) = shared.settings.limits.connections else { return };
    let (mut backoff, mut was_told) = (Backoff::new(), false);
    while shared.desk.open() >= most.max(1) {
        was_told |= make_room(shared, was_told);
        if shared.desk.open() >= most.max(1) {
            backoff.wait(shared).await;
        }
    }
}
