//! A tokio task for each connection.

use super::unread::has_unread;
use super::{ACCEPT_AGAIN, Closed, Report, Server, Terms};
use crate::echo::CHUNK;
use crate::limits;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use wheelwork::idle::{Answer, IdleTimeouts, Watch};

pub(super) struct Tasks {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<Report>>,
}

pub(super) fn start(terms: Terms) -> io::Result<Tasks> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let thread = thread::Builder::new().name("server".to_owned()).spawn(move || {
        let closed = Arc::new(Closed::default());
        let server = accept_all(listener, terms.clone(), closed.clone());
        runtime.block_on(async {
            tokio::select! {
                ended = server => ended,
                _ = stopped => Ok(()),
            }
        })?;
        Ok(closed.report(&terms))
    })?;
    Ok(Tasks { address, stop, thread })
}

impl Server for Tasks {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn stop(self: Box<Self>) -> io::Result<Report> {
        // It fails only if the server has ended, and then it says why.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| io::Error::other("the server's thread panicked"))?
    }
}

async fn accept_all(
    listener: std::net::TcpListener,
    terms: Terms,
    closed: Arc<Closed>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let idle = IdleTimeouts::new(&terms.timer, |wake: &mut Arc<Notify>, _| {
        wake.notify_one();
        // The task looks once more, and drops its watch if that is the end.
        Answer::KeepWatching
    });
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if limits::is_exhaustion(&error) => {
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
            Err(error) if limits::is_peers(&error) => continue,
            Err(error) => return Err(error),
        };
        stream.set_nodelay(true)?;
        let wake = Arc::new(Notify::new());
        let watch = idle.watch(wake.clone(), &terms.policy).map_err(io::Error::other)?;
        let (terms, closed) = (terms.clone(), closed.clone());
        tokio::spawn(async move {
            // An error of one connection is the end of that one.
            if let Ok(()) = serve(stream, &watch, &wake, &terms).await {
                closed.count();
            }
        });
    }
}

/// Gives back what it gets, until it is idle.
async fn serve(stream: TcpStream, watch: &Watch, wake: &Notify, terms: &Terms) -> io::Result<()> {
    let mut echo = Echo { stream, chunk: vec![0; CHUNK], unsent: 0..0, peer_sends: true };
    loop {
        tokio::select! {
            biased;
            has_read = echo.turn() => if has_read? {
                watch.read();
            },
            () = wake.notified() => {
                let unseen = echo.unsent.is_empty() && has_unread(&echo.stream);
                if watch.silent_for() >= terms.idle && !unseen {
                    return Ok(());
                }
            }
        }
    }
}

struct Echo {
    stream: TcpStream,
    chunk: Vec<u8>,
    /// What of the chunk has been read, and not yet taken by the socket.
    unsent: Range<usize>,
    /// A peer that sends no more may still be reading.
    peer_sends: bool,
}

impl Echo {
    /// One write or one read; whether bytes were read. Nothing is lost if it is dropped half-way.
    async fn turn(&mut self) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            self.unsent.start += self.stream.write(&self.chunk[self.unsent.clone()]).await?;
            return Ok(false);
        }
        if !self.peer_sends {
            std::future::pending::<()>().await;
        }
        let read = self.stream.read(&mut self.chunk).await?;
        self.unsent = 0..read;
        self.peer_sends = read > 0;
        Ok(read > 0)
    }
}
