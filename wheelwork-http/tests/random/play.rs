//! Plays the scripts of some clients, and compares with the model.

use crate::app::app;
use crate::frames::{HEADERS, parse};
use crate::pipe::{BUFFER, Pipe, Taking};
use crate::script::{Act, Script, Times, script};
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
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::unconstrained;
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Hyper, Limit, Listener, Peer, Plain, RequestBody, Server, serve};

const CLIENTS: usize = 30;

type Cuts = Arc<Mutex<HashMap<u16, Vec<(u64, Limit)>>>>;

struct Player {
    script: Script,
    number: u16,
    stream: Option<DuplexStream>,
    taking: Arc<Taking>,
    received: Vec<u8>,
    acted: usize,
}

struct Connections(UnboundedReceiver<(Pipe, Peer)>);

impl Listener for Connections {
    type Handshake = Plain<Pipe>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<Pipe>>, Peer)> {
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
                    panic!("closed before {at}, or not by then, {cuts:?}: {:?}", player.script);
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

fn start(timer: &HashedWheelTimer, times: &Times) -> (UnboundedSender<(Pipe, Peer)>, Server, Cuts) {
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
        let acts = script.acts.iter().map(|&(at, _)| at);
        let ends = script.closed.into_iter().flat_map(|at| [at - 1, at]).chain([script.end]);
        cuts.chain(acts).chain(ends).chain([script.begin]).collect::<Vec<_>>()
    };
    players.iter().flat_map(|player| of(&player.script)).collect()
}

impl Player {
    fn new((number, script): (u16, Script)) -> Self {
        let taking = Arc::default();
        Self { script, number, stream: None, taking, received: Vec::new(), acted: 0 }
    }

    /// No task of the server runs meanwhile if it is stalled. Returns false if it has closed the connection too early,
    /// or too late.
    async fn act(
        &mut self,
        now: u64,
        connect: &UnboundedSender<(Pipe, Peer)>,
        is_stalled: bool,
    ) -> bool {
        let settle = async || {
            if !is_stalled {
                settle().await
            }
        };
        if now == self.script.begin {
            let (ours, taking, theirs) = Pipe::new(self.script.is_waited_for);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.number));
            connect.send((theirs, address.into())).unwrap();
            (self.stream, self.taking) = (Some(ours), taking);
            settle().await;
        }
        while let Some((_, act)) = self.script.acts.get(self.acted).filter(|(at, _)| *at <= now) {
            let Some(stream) = &mut self.stream else { return true };
            let mut cx = Context::from_waker(Waker::noop());
            let stream = Pin::new(stream);
            let is_done = match *act {
                Act::Send(ref bytes) => {
                    let polled = stream.poll_write(&mut cx, bytes);
                    matches!(polled, Poll::Ready(Ok(length)) if length == bytes.len())
                }
                Act::End => stream.poll_shutdown(&mut cx).is_ready(),
                Act::Take(bytes) => self.read(bytes) == bytes,
                Act::TakeAll => self.read(BUFFER) > 0,
            };
            if !is_done {
                return false;
            }
            self.acted += 1;
            settle().await;
        }
        if self.script.reads_until.is_none_or(|until| now < until) {
            while self.read(BUFFER) > 0 {
                settle().await;
            }
        }
        if self.stream.is_some() && !is_stalled {
            let is_closed = Arc::strong_count(&self.taking) == 1;
            let Script { closed, ref cuts, .. } = self.script;
            if closed.map_or(is_closed && cuts.is_empty(), |at| is_closed != (now >= at)) {
                return false;
            }
        }
        if now == self.script.end {
            self.stream = None;
            settle().await;
        }
        true
    }

    /// Reads at most so many bytes of what has come. Returns how many.
    fn read(&mut self, most: usize) -> usize {
        let Some(stream) = &mut self.stream else { return 0 };
        let mut bytes = vec![0; most];
        let mut buffer = ReadBuf::new(&mut bytes);
        let mut cx = Context::from_waker(Waker::noop());
        let _ = Pin::new(stream).poll_read(&mut cx, &mut buffer);
        self.received.extend(buffer.filled());
        self.taking.took(buffer.filled().len());
        buffer.filled().len()
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
