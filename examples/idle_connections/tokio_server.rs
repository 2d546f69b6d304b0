//! An echo server with a tokio task for each connection, which closes idle connections.
//!
//! An idle event goes to the task through a channel. The task looks at its socket once more, and
//! ends.

use super::unread::Unread;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, Receiver, Sender};
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdleEvent, IdlePolicy, IdleTimeouts, Watch};

/// How soon to accept again after an error. The usual one is that there is no free descriptor.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Serves `listener`, and closes what sends nothing for `limit`. Counts these in `closed`.
pub(crate) fn serve(
    listener: std::net::TcpListener,
    timer: &HashedWheelTimer,
    limit: Duration,
    closed: &Arc<AtomicU64>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let idle = IdleTimeouts::new(timer, |events: &mut Sender<IdleEvent>, event| {
        // A full channel holds an event that the task has yet to see.
        let _ = events.try_send(event);
        Answer::KeepWatching
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept_all(listener, idle, limit, closed))
}

async fn accept_all(
    listener: std::net::TcpListener,
    idle: IdleTimeouts<Sender<IdleEvent>>,
    limit: Duration,
    closed: &Arc<AtomicU64>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let policy = IdlePolicy::new().reader(limit);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let (sender, events) = mpsc::channel(1);
        let watch = idle.watch(sender, &policy).map_err(io::Error::other)?;
        let closed = closed.clone();
        tokio::spawn(async move {
            // An error of one connection is the end of that one.
            if until_idle(stream, &watch, events, limit).await.is_ok() {
                closed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// Gives back what it gets, until it is idle.
async fn until_idle(
    mut stream: TcpStream,
    watch: &Watch,
    mut events: Receiver<IdleEvent>,
    limit: Duration,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // The runtime may not have heard of the bytes yet.
    let unread = Unread::of(&stream);
    let mut echo = pin!(echo(&mut stream, watch));
    loop {
        tokio::select! {
            biased;
            Err(error) = &mut echo => return Err(error),
            Some(event) = events.recv() => {
                // Bytes that the task has yet to read count, but not for ever: a peer that does not
                // take its echo holds the task up.
                let is_unread = event.first && unread.is_there();
                if watch.silent_for() >= limit && !is_unread {
                    return Ok(());
                }
            }
        }
    }
}

async fn echo(stream: &mut TcpStream, watch: &Watch) -> io::Result<Infallible> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        match stream.read(&mut chunk).await? {
            // The peer sends no more, and may still be reading.
            0 => return std::future::pending().await,
            read => {
                watch.record_read();
                stream.write_all(&chunk[..read]).await?;
            }
        }
    }
}
