//! `Turn`: a last delay before a limit ends a connection, so that its task reads what has arrived. A limit
//! measures the client, and the server may have stood still.

use super::state::{Conn, Flags};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The runtime looks at the sockets once for each, and at the tasks that this has woken: the connection's, that of a
/// stream, and one to which that has given the body.
const LOOKS: usize = 3;

#[derive(Default)]
pub(crate) struct Turn(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Turn {
    /// Ready when the turn is over. The next call begins another one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let begin = || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async {
                for _ in 0..LOOKS {
                    tokio::task::yield_now().await;
                }
            })
        };
        ready!(self.0.get_or_insert_with(begin).as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(())
    }

    /// The same for a connection. Another thread may look at the sockets just then. If it has not come to this one yet, the
    /// turn goes on. Once it has, a read has taken what had come, and what comes later is too late: otherwise a client that
    /// always sends more would never be judged.
    pub(crate) fn poll_for(&mut self, conn: &Conn, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.is_none() {
            conn.take(Flags::TOLD);
        }
        loop {
            ready!(self.poll(cx));
            if conn.take(Flags::BEHIND) == 0 {
                return Poll::Ready(());
            }
        }
    }
}
