//! A thread for each connection, which blocks in its read.

use super::unread::has_unread;
use super::{ACCEPT_AGAIN, Closed, Report, Server, Terms};
use crate::echo::CHUNK;
use crate::limits;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle, Scope};
use wheelwork::idle::{Answer, IdleEvent, IdleKind, IdleTimeouts};

const STACK: usize = 128 * 1024;

/// What the manager is told of a connection.
struct Connection {
    stream: Arc<TcpStream>,
    /// Ends the wait of a thread whose peer has said that it will send no more.
    closed: Sender<()>,
}

pub(super) struct Threaded {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    acceptor: JoinHandle<io::Result<Report>>,
}

pub(super) fn start(terms: Terms) -> io::Result<Threaded> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let stopping = Arc::new(AtomicBool::new(false));
    let stop = stopping.clone();
    let acceptor = thread::Builder::new().name("server".to_owned());
    let acceptor = acceptor.spawn(move || accept_all(&listener, &terms, &stop))?;
    Ok(Threaded { address, stopping, acceptor })
}

impl Server for Threaded {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn has_ended(&self) -> bool {
        self.acceptor.is_finished()
    }

    fn stop(self: Box<Self>) -> io::Result<Report> {
        self.stopping.store(true, Ordering::Relaxed);
        // The acceptor waits for a connection: here is one. If it fails, it has ended.
        drop(TcpStream::connect(self.address));
        self.acceptor.join().map_err(|_| io::Error::other("the server's thread panicked"))?
    }
}

fn accept_all(listener: &TcpListener, terms: &Terms, stopping: &AtomicBool) -> io::Result<Report> {
    let closed = Arc::new(Closed::default());
    let count = closed.clone();
    let idle = IdleTimeouts::new(&terms.timer, move |connection: &mut Connection, event| {
        close(connection, event, &count)
    });
    let accepted = thread::scope(|scope| {
        let accepted =
            accept_until(listener, stopping, |stream| spawn(scope, Arc::new(stream), terms, &idle));
        // Whoever is still there is told that the timer has stopped, and is closed by that.
        drop(terms.timer.stop());
        accepted
    });
    accepted.map(|()| closed.report(terms))
}

fn accept_until(
    listener: &TcpListener,
    stopping: &AtomicBool,
    mut admit: impl FnMut(TcpStream) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::Relaxed) {
            return Ok(());
        }
        match accepted.and_then(|(stream, _)| admit(stream)) {
            Err(error) if limits::is_exhaustion(&error) => thread::sleep(ACCEPT_AGAIN),
            Err(error) if limits::is_peers(&error) => {}
            result => result?,
        }
    }
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stream: Arc<TcpStream>,
    terms: &'scope Terms,
    idle: &IdleTimeouts<Connection>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let idle = idle.clone();
    let thread = thread::Builder::new().stack_size(STACK);
    // An error of one connection is the end of that one.
    thread.spawn_scoped(scope, move || drop(serve(&stream, terms, &idle)))?;
    Ok(())
}

/// Gives back what it gets, until the peer resets the connection or the manager closes it.
fn serve(
    stream: &Arc<TcpStream>,
    terms: &Terms,
    idle: &IdleTimeouts<Connection>,
) -> io::Result<()> {
    let (closed, is_closed) = mpsc::channel();
    let connection = Connection { stream: stream.clone(), closed };
    let watch = idle.watch(connection, &terms.policy).map_err(io::Error::other)?;
    let mut stream = &**stream;
    let mut chunk = vec![0; CHUNK];
    loop {
        match crate::echo::retry(|| stream.read(&mut chunk))? {
            0 => break,
            n => {
                watch.read();
                stream.write_all(&chunk[..n])?;
            }
        }
    }
    // The manager has closed it, or the peer sends no more, and may still be reading. The other end
    // of the channel goes with the manager's connection.
    let _ = is_closed.recv();
    Ok(())
}

fn close(connection: &Connection, event: IdleEvent, closed: &Closed) -> Answer {
    if event.kind != IdleKind::TimerStopped {
        if has_unread(&*connection.stream) {
            // The thread has not come to it; when it does, that is a touch.
            return Answer::KeepWatching;
        }
        closed.count();
    }
    // Both fail only if the peer or the thread is gone already.
    let _ = connection.stream.shutdown(Shutdown::Both);
    let _ = connection.closed.send(());
    Answer::StopWatching
}
