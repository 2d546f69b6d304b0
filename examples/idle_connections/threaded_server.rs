//! An echo server with a thread for each connection, which closes idle connections.
//!
//! A thread blocks in its read. On an idle event the timer's thread shuts the socket down, and that
//! ends the read.

use crate::unread::Unread;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};

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
    let idle = IdleTimeouts::new(timer, move |connection: &mut Connection, event| {
        // Bytes that the thread has yet to read count, but not for ever: a peer that does not take
        // its echo blocks the thread.
        if event.first && Unread::of(&*connection.stream).is_there() {
            return Answer::KeepWatching;
        }
        closed.fetch_add(1, Ordering::Relaxed);
        // It fails only if the peer is gone already.
        let _ = connection.stream.shutdown(Shutdown::Both);
        Answer::StopWatching
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
    loop {
        match (&*stream).read(&mut chunk)? {
            0 => break,
            read => {
                watch.record_read();
                (&*stream).write_all(&chunk[..read])?;
            }
        }
    }
    // The peer sends no more, and may still be reading.
    let _ = is_closed.recv();
    Ok(())
}
