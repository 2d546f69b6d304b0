//! A server on one thread: a hand-written event loop on mio, whose tasks sleep on a `LocalTimer`.
//!
//! Each connection is a task, and no task is `Send`. It echoes what it reads, and ends when its client was
//! silent for too long. The loop parks in mio until a socket is ready, or until the timer's next deadline.
//!
//! ```console
//! $ cargo run --example local_loop
//! ```

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll as Poller, Registry, Token, event::Source};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use std::{net::SocketAddr, thread};
use wheelwork::wheel::LocalTimer;

const SILENCE: Duration = Duration::from_secs(1);

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Ready = Arc<Mutex<VecDeque<usize>>>;

/// Puts its task into the queue of those to poll.
struct TaskWaker {
    task: usize,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.lock().expect("no panic under it").push_back(self.task);
    }
}

/// What the tasks of the loop share.
#[derive(Clone)]
struct Handle {
    timer: LocalTimer,
    registry: Rc<Registry>,
    /// The wakers of the tasks that wait for a socket.
    waiting: Rc<RefCell<HashMap<Token, Waker>>>,
    spawned: Rc<RefCell<Vec<Task>>>,
}

impl Handle {
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.spawned.borrow_mut().push(Box::pin(task));
    }

    fn register(&self, source: &mut impl Source, token: Token) -> io::Result<()> {
        self.registry.register(source, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Tries until it would not block.
    async fn retry<T>(
        &self,
        token: Token,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        poll_fn(|cx| match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.waiting.borrow_mut().insert(token, cx.waker().clone());
                Poll::Pending
            }
            done => Poll::Ready(done),
        })
        .await
    }
}

/// Runs all tasks to their ends.
fn run(mut poller: Poller, handle: &Handle) -> io::Result<()> {
    let (mut events, ready) = (Events::with_capacity(64), Ready::default());
    let (mut tasks, mut next_task) = (HashMap::<usize, Task>::new(), 0);
    loop {
        for task in handle.spawned.take() {
            tasks.insert(next_task, task);
            ready.lock().expect("no panic under it").push_back(next_task);
            next_task += 1;
        }
        let next = ready.lock().expect("no panic under it").pop_front();
        if let Some(number) = next {
            let Some(task) = tasks.get_mut(&number) else { continue };
            let waker = Waker::from(Arc::new(TaskWaker { task: number, ready: ready.clone() }));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                tasks.remove(&number);
            }
            continue;
        }
        if tasks.is_empty() {
            return Ok(());
        }
        // All tasks wait: for a socket, or for the timer.
        match poller.poll(&mut events, handle.timer.time_to_park()) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            let waker = handle.waiting.borrow_mut().remove(&event.token());
            waker.into_iter().for_each(Waker::wake);
        }
        handle.timer.turn();
    }
}

/// Accepts `connections` connections, and gives each a task.
async fn accept(handle: Handle, mut listener: TcpListener, connections: usize) {
    let token = Token(0);
    handle.register(&mut listener, token).expect("a new socket");
    for number in 1..=connections {
        let Ok((stream, _)) = handle.retry(token, || listener.accept()).await else { return };
        let inner = handle.clone();
        handle.spawn(async move {
            let ended = echo(inner, stream, Token(number)).await;
            println!("connection {number}: {ended}");
        });
    }
}

/// Echoes until the client leaves, or is silent for too long.
async fn echo(handle: Handle, mut stream: TcpStream, token: Token) -> &'static str {
    handle.register(&mut stream, token).expect("a new socket");
    let mut buffer = [0; 64];
    loop {
        let read = handle.retry(token, || stream.read(&mut buffer));
        let read = match handle.timer.timeout(SILENCE, read).await {
            Err(_) => return "idle, closed",
            Ok(Err(_)) | Ok(Ok(0)) => return "the client has left",
            Ok(Ok(read)) => read,
        };
        // Such a short answer always fits into the socket's buffer.
        if handle.retry(token, || stream.write(&buffer[..read])).await.is_err() {
            return "the client has left";
        }
    }
}

fn talking_client(server: SocketAddr) -> io::Result<()> {
    let mut stream = std::net::TcpStream::connect(server)?;
    for _ in 0..3 {
        stream.write_all(b"hello")?;
        stream.read_exact(&mut [0; 5])?;
        thread::sleep(SILENCE / 3);
    }
    println!("talking client: three answers");
    Ok(())
}

fn silent_client(server: SocketAddr) -> io::Result<()> {
    let mut stream = std::net::TcpStream::connect(server)?;
    let begin = Instant::now();
    assert_eq!(stream.read(&mut [0; 5])?, 0);
    println!("silent client: closed after {} ms", begin.elapsed().as_millis());
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let poller = Poller::new()?;
    let handle = Handle {
        timer: LocalTimer::new(),
        registry: Rc::new(poller.registry().try_clone()?),
        waiting: Rc::default(),
        spawned: Rc::default(),
    };
    let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let server = listener.local_addr()?;
    let clients = [talking_client, silent_client].map(|run| thread::spawn(move || run(server)));

    handle.spawn(accept(handle.clone(), listener, clients.len()));
    run(poller, &handle)?;
    for client in clients {
        client.join().expect("no panic")?;
    }
    println!("timeouts left: {}", handle.timer.waiting());
    Ok(())
}
