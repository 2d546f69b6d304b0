//! An echo server with a thread for each connection, which closes idle connections.
//!
//! A thread waits for bytes. On an idle event the timer's thread shuts the socket down, and that ends
//! the wait.
//!
//! The thread records a read *before* it takes the bytes. The timer's thread looks first for unread bytes,
//! and then for a read. So it sees one or the other, even if both threads were held up and go on at once.

use super::unread::Unread;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, Idle, IdlePolicy, IdleTimeouts};

/// How soon to accept again after an error. The usual one is that there is no free descriptor.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

const STACK: usize = 128 * 1024;

struct Connection {
    stream: Arc<TcpStream>,
    /// Goes with this when the connection is closed, which ends the thread's wait.
    _open: Sender<()>,
}

/// Serves `listener`, and closes what sends nothing for `limit`. Counts these in `closed`.
pub(crate) fn serve(
    listener: TcpListener,
    timer: &HashedWheelTimer,
    limit: Duration,
    closed: &Arc<AtomicU64>,
) -> io::Result<()> {
    let closed = closed.clone();
    let idle = IdleTimeouts::batched(timer, move |batch: &mut [Idle<Connection>]| {
        for idle in batch {
            // Bytes that the thread has yet to read count, but not for ever: a peer that does not take
            // its echo blocks the thread.
            let is_unread = idle.event().first && Unread::of(&*idle.connection.stream).is_there();
            if is_unread || !idle.is_still_silent() {
                continue;
            }
            closed.fetch_add(1, Ordering::Relaxed);
            // It fails only if the peer is gone already.
            let _ = idle.connection.stream.shutdown(Shutdown::Both);
            idle.answer(Answer::StopWatching);
        }
    });
    let policy = IdlePolicy::new().reader(limit);
    loop {
        let started = listener.accept().and_then(|(stream, _)| {
            let (idle, policy) = (idle.clone(), policy.clone());
            // An error of one connection is the end of that one.
            let echo = move || drop(echo(Arc::new(stream), &idle, &policy));
            thread::Builder::new().stack_size(STACK).spawn(echo)
        });
        if started.is_err() {
            thread::sleep(ACCEPT_AGAIN);
        }
    }
}

/// Gives back what it gets, until the peer resets the connection or the idle event closes it.
fn echo(
    stream: Arc<TcpStream>,
    idle: &IdleTimeouts<Connection>,
    policy: &IdlePolicy,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (open, is_closed) = mpsc::channel();
    let connection = Connection { stream: stream.clone(), _open: open };
    let watch = idle.watch(connection, policy).map_err(io::Error::other)?;
    let mut chunk = vec![0; 16 * 1024];
    while stream.peek(&mut [0])? > 0 {
        watch.record_read();
        let read = (&*stream).read(&mut chunk)?;
        (&*stream).write_all(&chunk[..read])?;
    }
    // The peer sends no more, and may still be reading.
    let _ = is_closed.recv();
    Ok(())
}
