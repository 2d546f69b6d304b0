//! Plays the scripts of some clients, and compares with the model.

use crate::app::app;
use crate::frames::{HEADERS, parse};
use crate::script::{Script, Times, script};
use crate::world::TICK;
use hyper::service::service_fn;
use kit::Random;
use std::collections::{BTreeSet, HashMap};
use std::future::{Ready, ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::unconstrained;
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Hyper, Limit, Listener, Peer, Plain, RequestBody, Server, serve};

const CLIENTS: usize = 30;

/// The bytes that a connection holds on the way.
const BUFFER: usize = 512 * 1024;

type Cuts = Arc<Mutex<HashMap<u16, Vec<(u64, Limit)>>>>;

struct Player {
    script: Script,
    number: u16,
    stream: Option<DuplexStream>,
    received: Vec<u8>,
    sent: usize,
}

/// Connections within the process, whose bytes arrive at once.
struct Connections(UnboundedReceiver<(DuplexStream, Peer)>);

impl Listener for Connections {
    type Handshake = Plain<DuplexStream>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<DuplexStream>>, Peer)> {
        let (stream, peer) = self.0.recv().await.ok_or(io::ErrorKind::NotConnected)?;
        Ok((ready(Ok(stream)), peer))
    }
}

pub(crate) fn play(random: &mut Random) {
    let times = Times::random(random);
    let scripts: Vec<Script> = (0..CLIENTS).map(|_| script(random, &times)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    // In a stall, the players act without a pause: tokio is not to stop them.
    runtime.block_on(unconstrained(async {
        let clock = ManualClock::new();
        let timer = HashedWheelTimer::builder().tick_duration(TICK).clock(clock.clone());
        let timer = timer.build().unwrap();
        let (connect, server, cuts) = start(&timer, &times);
        let mut players: Vec<_> = (1..).zip(scripts).map(Player::new).collect();
        let mut now = 0;
        let mut moments = moments(&players);
        moments.insert(times.stall_end);
        for at in moments {
            let is_stalled = times.is_stalled(at);
            if !(is_stalled && times.is_stopped) {
                clock.advance_in_one_jump(Duration::from_millis(at - now));
                now = at;
            }
            if !is_stalled {
                settle().await;
            }
            for player in &mut players {
                if !player.act(at, &connect, is_stalled).await {
                    let cuts = cuts.lock().unwrap().remove(&player.number);
                    panic!("closed before {at}, {cuts:?}: {:?}", player.script);
                }
            }
        }
        for player in &players {
            player.judge(cuts.lock().unwrap().remove(&player.number).unwrap_or_default());
        }
        settle().await;
        assert_eq!((server.connections(), timer.pending_timeouts()), (0, 0));
    }));
}

fn start(
    timer: &HashedWheelTimer,
    times: &Times,
) -> (UnboundedSender<(DuplexStream, Peer)>, Server, Cuts) {
    let (connect, connections) = unbounded_channel();
    let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
    let cuts = Cuts::default();
    let serving = serve(Connections(connections), service, times.limits()).timer(timer);
    let serving = serving.http2(|http| _ = http.enable_connect_protocol()).on_cut({
        let (cuts, timer, start) = (cuts.clone(), timer.clone(), timer.now());
        move |cut| {
            let now = (timer.now() - start).as_millis() as u64;
            let port = cut.peer.address().unwrap().port();
            cuts.lock().unwrap().entry(port).or_default().push((now, cut.limit));
        }
    });
    let server = serving.server();
    tokio::spawn(async { serving.await.unwrap() });
    (connect, server, cuts)
}

/// When something happens, and the tick before each cut.
fn moments(players: &[Player]) -> BTreeSet<u64> {
    let of = |script: &Script| {
        let cuts = script.cuts.iter().flat_map(|&(at, _)| [at - 1, at]);
        let sends = script.sends.iter().map(|&(at, _)| at);
        cuts.chain(sends).chain([script.begin, script.end]).collect::<Vec<_>>()
    };
    players.iter().flat_map(|player| of(&player.script)).collect()
}

impl Player {
    fn new((number, script): (u16, Script)) -> Self {
        Self { script, number, stream: None, received: Vec::new(), sent: 0 }
    }

    /// No task of the server runs meanwhile if it is stalled. Returns false if it has closed the connection too early.
    async fn act(
        &mut self,
        now: u64,
        connect: &UnboundedSender<(DuplexStream, Peer)>,
        is_stalled: bool,
    ) -> bool {
        let settle = async || {
            if !is_stalled {
                settle().await
            }
        };
        if now == self.script.begin {
            let (ours, theirs) = duplex(BUFFER);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.number));
            connect.send((theirs, address.into())).unwrap();
            self.stream = Some(ours);
            settle().await;
        }
        while let Some((_, bytes)) = self.script.sends.get(self.sent).filter(|(at, _)| *at <= now) {
            let Some(stream) = &mut self.stream else { return true };
            let mut cx = Context::from_waker(Waker::noop());
            let polled = Pin::new(stream).poll_write(&mut cx, bytes);
            if !matches!(polled, Poll::Ready(Ok(length)) if length == bytes.len()) {
                return false;
            }
            self.sent += 1;
            settle().await;
        }
        if self.script.reads_until.is_none_or(|until| now < until) {
            while self.read() {
                settle().await;
            }
        }
        if now == self.script.end {
            self.stream = None;
            settle().await;
        }
        true
    }

    /// Reads what has come. Returns false if nothing has.
    fn read(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut bytes = vec![0; BUFFER];
        let mut buffer = ReadBuf::new(&mut bytes);
        let mut cx = Context::from_waker(Waker::noop());
        let _ = Pin::new(stream).poll_read(&mut cx, &mut buffer);
        self.received.extend(buffer.filled());
        !buffer.filled().is_empty()
    }

    fn judge(&self, cuts: Vec<(u64, Limit)>) {
        let Script { is_http2, .. } = self.script;
        let mut seen = cuts;
        // A client that does not answer GOAWAY's ping is closed 5 s later.
        seen.dedup_by_key(|&mut (_, limit)| limit);
        assert_eq!(seen, self.script.cuts, "HTTP/2: {is_http2}, {:?}", self.script);
        let answers = match is_http2 {
            true => parse(&self.received).iter().filter(|frame| frame.kind == HEADERS).count(),
            false => {
                let text = String::from_utf8_lossy(&self.received);
                text.matches("HTTP/1.1 ").count() - text.matches("HTTP/1.1 408").count()
            }
        };
        assert_eq!(answers, self.script.answers, "HTTP/2: {is_http2}, {:?}", self.script);
    }
}

/// Lets all tasks act.
async fn settle() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}
