//! The honest clients: requests on keep-alive connections, with short pauses.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Each client makes some requests on a connection, and then takes a new one.
const REQUESTS: usize = 20;

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Honest {
    tasks: Vec<JoinHandle<Vec<Option<Duration>>>>,
    is_over: Arc<AtomicBool>,
}

pub(crate) struct Fared {
    requests: usize,
    errors: usize,
    p50: Duration,
    p99: Duration,
}

impl Honest {
    pub(crate) fn begin(address: SocketAddr, clients: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        // Together about 1000 requests a second.
        let pause = Duration::from_millis(if clients == 1 { 5 } else { clients as u64 });
        let task = |number| {
            let is_over = is_over.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(number as u64)).await; // spares the queue of the listener
                client(address, pause, is_over).await
            })
        };
        Self { tasks: (0..clients).map(task).collect(), is_over }
    }

    pub(crate) async fn end(self) -> Fared {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(task.await.unwrap_or_default());
        }
        let mut times: Vec<Duration> = all.iter().flatten().copied().collect();
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        let errors = all.len() - times.len();
        Fared { requests: all.len(), errors, p50: at(50), p99: at(99) }
    }
}

async fn client(
    address: SocketAddr,
    pause: Duration,
    is_over: Arc<AtomicBool>,
) -> Vec<Option<Duration>> {
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
        let Ok(Ok(mut stream)) = connected else {
            times.push(None);
            continue;
        };
        for _ in 0..REQUESTS {
            let begin = Instant::now();
            let answered = timeout(PATIENCE, request(&mut stream)).await;
            let is_ok = matches!(answered, Ok(Ok(())));
            times.push(is_ok.then(|| begin.elapsed()));
            if !is_ok || is_over.load(Ordering::Relaxed) {
                break;
            }
            sleep(pause).await;
        }
    }
    times
}

async fn request(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
    let mut answer = [0; 1024];
    let mut length = 0;
    while !answer[..length].ends_with(b"hello") {
        match stream.read(&mut answer[length..]).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => length += read,
        }
    }
    Ok(())
}

impl fmt::Display for Fared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, errors, p50, p99 } = self;
        let millis = |time: &Duration| time.as_secs_f64() * 1000.0;
        let (p50, p99) = (millis(p50), millis(p99));
        write!(f, "p50 {p50:.2} p99 {p99:.2} ms, {errors} errors of {requests}")
    }
}
