//! A server on a clock that stands still, and its clients.

use crate::app::app;
use hyper::service::service_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{
    Effect, Hyper, Limit, Limits, Report, RequestBody, RequestLimits, Server, serve,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Limits that all differ, in seconds.
pub(crate) fn limits() -> Limits {
    Limits::none()
        .handshake(7 * SECOND)
        .header(11 * SECOND)
        .idle(40 * SECOND)
        .tunnel(50 * SECOND)
        .handler(60 * SECOND)
        .body(23 * SECOND)
        .response(29 * SECOND)
        .shutdown(31 * SECOND)
}

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    pub(crate) serving: JoinHandle<Report>,
    pub(crate) cuts: Arc<Mutex<Vec<(Limit, Effect)>>>,
    pub(crate) timer: HashedWheelTimer,
}

/// Runs `test` beside a server, on a runtime without a timer.
pub(crate) fn world(limits: Limits, test: impl AsyncFnOnce(World)) {
    world_with(limits, |_| None, test);
}

/// With `OwnLimits` among the extensions of each request.
pub(crate) fn world_that_tells_limits(limits: Limits, test: impl AsyncFnOnce(World)) {
    run(async { test(start(limits, Box::new(|_| None), true).await).await });
}

/// With limits that depend on the request.
pub(crate) fn world_with(
    limits: Limits,
    limits_for: impl Fn(&http::Request<()>) -> Option<RequestLimits> + Send + Sync + 'static,
    test: impl AsyncFnOnce(World),
) {
    run(async { test(start(limits, Box::new(limits_for), false).await).await });
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap().block_on(test);
}

type LimitsFor = Box<dyn Fn(&http::Request<()>) -> Option<RequestLimits> + Send + Sync>;

/// Has no type parameter, so the server is compiled once, and not for each test.
async fn start(limits: Limits, limits_for: LimitsFor, tells_limits: bool) -> World {
    let clock = ManualClock::new();
    let timer =
        HashedWheelTimer::builder().tick_duration(TICK).clock(clock.clone()).build().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let cuts: Arc<Mutex<Vec<_>>> = Arc::default();
    let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
    let serving = serve(listener, service, limits)
        .timer(&timer)
        .limits_for(limits_for)
        .tell_peer()
        .http1(|http| _ = http.half_close(true))
        .http2(|http| _ = http.enable_connect_protocol())
        .on_cut({
            let cuts = cuts.clone();
            move |cut| cuts.lock().unwrap().push((cut.limit, cut.effect))
        });
    let serving = if tells_limits { serving.tell_limits() } else { serving };
    let server = serving.server();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    World { clock, address, server, serving, cuts, timer }
}

impl World {
    pub(crate) async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        settle().await;
        Client { stream }
    }

    /// Moves the clock, and lets all tasks act.
    pub(crate) async fn pass(&self, time: Duration) {
        settle().await;
        self.clock.advance_in_one_jump(time);
        settle().await;
    }

    /// Moves the clock to the end of the limit of clients that do not read, and takes their reports. None comes before. What
    /// was under way at the server's last look may have arrived since, and counts: on a busy machine more than once.
    pub(crate) async fn cuts_of_writes(
        &self,
        after: Duration,
        count: usize,
    ) -> Vec<(Limit, Effect)> {
        self.pass(after - TICK).await;
        assert_eq!(self.cuts(), [], "too early");
        self.pass(TICK).await;
        let mut cuts = self.cuts();
        for _ in 0..20 {
            if cuts.len() < count {
                self.pass(after).await;
                cuts.extend(self.cuts());
            }
        }
        cuts
    }

    /// Takes the reports so far.
    pub(crate) fn cuts(&self) -> Vec<(Limit, Effect)> {
        std::mem::take(&mut self.cuts.lock().unwrap())
    }
}

/// Lets all tasks act on what the sockets have. Each yield polls the sockets. On a busy machine, the kernel may
/// need a moment to bring bytes from one end to the other.
pub(crate) async fn settle() {
    for _ in 0..8 {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        settle().await;
    }

    /// The server does not run meanwhile.
    pub(crate) fn send_at_once(&self, bytes: impl AsRef<[u8]>) {
        assert_eq!(self.stream.try_write(bytes.as_ref()).unwrap(), bytes.as_ref().len());
    }

    /// What has come so far.
    pub(crate) fn received(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut bytes = [0; 64 * 1024];
        while let Ok(read @ 1..) = self.stream.try_read(&mut bytes) {
            all.extend(&bytes[..read]);
        }
        all
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8(self.received()).unwrap()
    }

    /// Whether the server has closed or reset the connection. Drops what it has sent.
    pub(crate) async fn is_closed(&mut self) -> bool {
        settle().await;
        let mut bytes = [0; 64 * 1024];
        loop {
            match self.stream.try_read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Reads to the end.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let _ = self.stream.read_to_end(&mut all).await;
        all
    }
}
