//! `Executor`: hyper spawns the streams of HTTP/2 with it, so that a limit can reset a stream.
//!
//! hyper's stream is opaque, and does not tell its request. But its first poll calls the service's future,
//! on the same thread. That future leaves the record of the request in a cell of the thread, where the stream's task
//! finds it after the poll. A tunnel's ticket goes to the task that hyper spawns for it in the same way.

use super::ticket::Ticket;
use crate::conn::Record;
use crate::limit::Limit;
use pin_project_lite::pin_project;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

thread_local! {
    // Weak: if that poll panics, it stays there.
    static RECORD: Cell<Option<Weak<Record>>> = const { Cell::new(None) };
    static TUNNEL: Cell<Option<Tunnel>> = const { Cell::new(None) };
}

/// Tells the task of the stream that is polled its record.
pub(super) fn tell_record(record: &Arc<Record>) {
    RECORD.set(Some(Arc::downgrade(record)));
}

/// Keeps the tunnel in flight that hyper is about to spawn.
pub(super) fn tell_tunnel(ticket: Ticket) {
    TUNNEL.set(Some(Tunnel::new(ticket)));
}

/// A tunnel within HTTP/2. hyper's task of it writes what the service has written.
struct Tunnel(Ticket);

impl Tunnel {
    fn new(ticket: Ticket) -> Self {
        ticket.conn.begin_inner_tunnel();
        Self(ticket)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.0.conn.end_inner_tunnel();
    }
}

/// Spawns on tokio.
#[derive(Clone, Copy, Debug)]
pub struct Executor(pub(crate) ());

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let task =
            StreamTask { future: Some(future), tunnel: TUNNEL.take(), record: None, known: None };
        tokio::spawn(task);
    }
}

pin_project! {
    /// The task of a stream, or of a tunnel.
    struct StreamTask<F> {
        // `None` after it has ended.
        #[pin]
        future: Option<F>,
        tunnel: Option<Tunnel>,
        record: Option<Arc<Record>>,
        // The waker that the record has.
        known: Option<Waker>,
    }
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if let Some(record) = &this.record
            && matches!(record.passed(), Some(Limit::Response | Limit::ResponseRate))
        {
            // h2 resets the stream with CANCEL. If hyper gave it the last chunk now, nobody could.
            this.future.set(None);
            record.stream_was_reset();
            return Poll::Ready(());
        }
        let is_first = this.record.is_none();
        if is_first {
            RECORD.take();
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else { return Poll::Ready(()) };
        let polled = future.poll(cx);
        if let Some(Tunnel(ticket)) = this.tunnel {
            ticket.conn.allow_answers(); // a write or two, or room for one
            return polled;
        }
        TUNNEL.take(); // hyper has refused it
        if is_first {
            *this.record = RECORD.take().and_then(|record| record.upgrade());
        }
        let Some(record) = this.record else { return polled };
        if polled.is_ready() {
            this.future.set(None);
            record.stream_has_ended();
            return polled;
        }
        if !this.known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *this.known = Some(cx.waker().clone());
            record.register_task(cx.waker());
            if record.passed().is_some() {
                cx.waker().wake_by_ref(); // perhaps since the future has looked, so nobody was woken
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::{Conn, Settings, Stage, Verdict};
    use crate::counts::Counts;
    use crate::limits::Limits;
    use crate::peer::Peer;
    use crate::request::chunk::Chunk;
    use crate::time::Clock;
    use bytes::Buf;
    use std::hash::RandomState;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::task::Wake;
    use std::time::Duration;
    use wheelwork::{HashedWheelTimer, ManualClock};

    const LIMIT: Duration = Duration::from_secs(10);

    fn connection(clock: &ManualClock) -> Arc<Conn> {
        let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
        let settings = Settings {
            clock: Clock::new(timer),
            limits: Limits::none().handler(LIMIT).response(LIMIT),
            counts: Arc::new(Counts::new()),
            tells_peer: false,
            tells_limits: false,
            on_cut: None,
            limits_for: None,
            random: RandomState::new(),
            shutdown_deadline: AtomicU64::new(0),
        };
        let conn = Conn::accept(Arc::new(settings), Peer::Local);
        conn.begin_protocol(Stage::Http2);
        conn
    }

    fn begin_request(conn: &Arc<Conn>) -> (Arc<Record>, Ticket) {
        let record = Arc::new(Record::new(None));
        conn.note_request(&record);
        (record.clone(), Ticket::new(conn, Some(record)))
    }

    fn task<F: Future<Output = ()>>(future: F) -> StreamTask<F> {
        StreamTask { future: Some(future), tunnel: None, record: None, known: None }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// The connection's task judges after the handler has looked, and before it can wake anybody.
    #[test]
    fn a_limit_that_passes_in_the_first_poll_is_seen() {
        let clock = ManualClock::new();
        let conn = connection(&clock);
        let (record, ticket) = begin_request(&conn);
        let mut task = pin!(task(std::future::poll_fn(|_| {
            tell_record(&record);
            ticket.handler_works();
            clock.advance_in_one_jump(LIMIT);
            conn.attend();
            Poll::Pending
        })));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(record.passed(), Some(Limit::Handler));
        assert!(woken.0.load(Ordering::Relaxed));
    }

    /// A response whose last chunk waits for a window. The task ends when it has got a byte of it.
    #[test]
    fn a_response_is_reset_if_its_limit_has_passed_before_its_last_chunk_goes() {
        let clock = ManualClock::new();
        let conn = connection(&clock);
        let (record, ticket) = begin_request(&conn);
        let chunk = Chunk::counted(&b"two"[..], &ticket);
        let mut polls = 0;
        let mut task = Box::pin(task(std::future::poll_fn(move |_| {
            let _ = &chunk;
            tell_record(&record);
            polls += 1;
            if polls == 1 { Poll::Pending } else { panic!("hyper sends the chunk") }
        })));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut cx).is_pending());
        clock.advance_in_one_jump(LIMIT);
        conn.attend();
        assert!(task.as_mut().poll(&mut cx).is_ready());
        for _ in 0..3 {
            clock.advance_in_one_jump(LIMIT);
            assert_eq!(conn.attend(), Verdict::default(), "nothing is left of it");
        }
        drop(ticket);
    }

    /// The same, if the limit passes while hyper sends the chunk: the rest of it lies in h2.
    #[test]
    fn a_last_chunk_that_goes_when_its_limit_passes_ends_its_connection_softly() {
        let clock = ManualClock::new();
        let conn = connection(&clock);
        let (record, ticket) = begin_request(&conn);
        let mut chunk = Chunk::counted(&b"two"[..], &ticket);
        let mut polls = 0;
        let mut task = pin!(task(std::future::poll_fn(|_| {
            tell_record(&record);
            polls += 1;
            if polls == 1 {
                return Poll::Pending;
            }
            clock.advance_in_one_jump(LIMIT);
            conn.attend();
            chunk.advance(1);
            Poll::Ready(())
        })));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut cx).is_pending());
        assert!(task.as_mut().poll(&mut cx).is_ready());
        assert_eq!(record.passed(), Some(Limit::Response));
        clock.advance_in_one_jump(LIMIT);
        assert_eq!(conn.attend(), Verdict { close_softly: true, close: None });
        clock.advance_in_one_jump(LIMIT);
        assert_eq!(conn.attend().close, Some(Limit::Response));
    }
}
