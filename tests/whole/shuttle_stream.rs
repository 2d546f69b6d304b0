//! Streams with idle timeouts under random schedules of every lock and atomic, like `shuttle.rs`.
//! Three tasks wrap streams, and read, write, split, pause, pass and drop them, each on a thread that is
//! woken by its waker alone. At first, the peers move some bytes. One thread moves the clock until all tasks
//! have ended. In half of the schedules, one stops the timer before, and then closes all streams. A wake-up
//! that is lost leaves a task waiting, and shuttle's bound of steps ends the schedule.

use crate::schedules::{Bell, iterations};
use futures_io::{AsyncRead, AsyncWrite};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use wheelwork::idle::{IdlePolicy, IdleStream, IdleStreams, TimedOut};
use wheelwork::{HashedWheelTimer, ManualClock};

const TICK: Duration = Duration::from_millis(100);

/// The idle limit of each stream.
const LIMIT: Duration = Duration::from_millis(200);

const TASKS: usize = 3;

/// Operations of each task.
const OPERATIONS: usize = 6;

/// Bytes that the peers move. Later, only silences wake the tasks.
const BYTES: usize = 20;

/// The most turns before the timer is stopped: in some schedules all tasks have ended by then.
const WAIT: u32 = 3000;

/// One direction of a pipe, as its near end sees it.
#[derive(Default)]
struct Direction {
    /// Bytes that can be read, or the room for bytes that are written.
    ready: usize,
    closed: bool,
    waker: Option<Waker>,
}

/// The near end of a pipe: what it reads, what it writes.
#[derive(Clone, Default)]
struct Pipe([Arc<Mutex<Direction>>; 2]);

impl Pipe {
    /// Moves at most one byte.
    fn poll(&self, half: usize, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        let waker = cx.waker().clone();
        let mut direction = self.0[half].lock().unwrap();
        if direction.ready > 0 {
            direction.ready -= 1;
            return Poll::Ready(Ok(1));
        }
        if direction.closed {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        let previous = direction.waker.replace(waker);
        drop(direction);
        drop(previous);
        Poll::Pending
    }

    /// The far end sends a byte, takes one, or closes.
    fn change(&self, half: usize, change: impl FnOnce(&mut Direction)) {
        let mut direction = self.0[half].lock().unwrap();
        change(&mut direction);
        let waker = direction.waker.take();
        drop(direction);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(0, cx)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(1, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A stream, and a time that is not after its last activity.
struct Watched {
    stream: IdleStream<Pipe>,
    since: Instant,
}

impl Watched {
    fn poll(&mut self, half: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match half {
            0 => Pin::new(&mut self.stream).poll_read(cx, &mut [0]),
            _ => Pin::new(&mut self.stream).poll_write(cx, &[0]),
        }
    }
}

/// What the tasks of all schedules have seen. Not shuttle's atomics: it outlives each schedule.
#[derive(Default)]
struct Seen {
    moved: std::sync::atomic::AtomicUsize,
    idle: std::sync::atomic::AtomicUsize,
    closed: std::sync::atomic::AtomicUsize,
}

/// What all tasks of a schedule share.
struct World {
    timer: HashedWheelTimer,
    streams: IdleStreams,
    pipes: Mutex<Vec<Pipe>>,
    /// Streams that one task has polled and another one takes over.
    passed: Mutex<Vec<Watched>>,
    /// Whether new pipes are closed, because the timer is stopped.
    closing: Mutex<bool>,
    bells: Mutex<Vec<Arc<Bell>>>,
    running: AtomicUsize,
    seen: Arc<Seen>,
}

impl World {
    fn new(clock: &ManualClock, seen: &Arc<Seen>) -> Self {
        let builder = HashedWheelTimer::builder().tick_duration(TICK).ticks_per_wheel(4);
        let timer = builder.clock(clock.clone()).build().expect("settings within their ranges");
        Self {
            streams: IdleStreams::new(&timer),
            timer,
            pipes: Mutex::default(),
            passed: Mutex::default(),
            closing: Mutex::default(),
            bells: Mutex::default(),
            running: AtomicUsize::new(TASKS),
            seen: seen.clone(),
        }
    }

    fn bell(&self) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        self.bells.lock().unwrap().push(bell.clone());
        bell
    }

    /// `None` if the timer is stopped.
    fn wrap(&self) -> Option<Watched> {
        let pipe = Pipe::default();
        let closing = self.closing.lock().unwrap();
        pipe.0.iter().for_each(|half| half.lock().unwrap().closed = *closing);
        self.pipes.lock().unwrap().push(pipe.clone());
        drop(closing);
        let since = self.timer.now();
        let stream = self.streams.wrap_with(pipe, &IdlePolicy::new().both(LIMIT), |_| None).ok()?;
        Some(Watched { stream, since })
    }

    /// Waits until a half moves a byte or fails.
    fn block_on(&self, bell: &Arc<Bell>, watched: &Mutex<Watched>, half: usize) {
        let moved = poll_fn(|cx| {
            let mut watched = watched.lock().unwrap();
            let before = self.timer.now();
            let polled = watched.poll(half, cx);
            match &polled {
                Poll::Ready(Ok(_)) => watched.since = before,
                Poll::Ready(Err(error)) if error.kind() == ErrorKind::TimedOut => {
                    assert!(self.timer.now() >= watched.since + LIMIT, "early");
                }
                _ => {}
            }
            polled
        });
        let ended = match bell.block_on(&mut Box::pin(moved)) {
            Ok(moved) => {
                assert_eq!(moved, 1);
                &self.seen.moved
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let source = error.get_ref().and_then(|source| source.downcast_ref::<TimedOut>());
                assert!(source.expect("a typed error").silent_for >= LIMIT);
                &self.seen.idle
            }
            Err(_) => &self.seen.closed,
        };
        ended.fetch_add(1, SeqCst);
    }

    fn task(self: &Arc<Self>) {
        let bell = self.bell();
        let waker = bell.clone().into();
        let cx = &mut Context::from_waker(&waker);
        for _ in 0..OPERATIONS {
            let Some(mut watched) = self.wrap() else { break };
            let half = any_half();
            match thread_rng().gen_range(0..6u8) {
                0 => _ = watched.poll(half, cx), // and drop
                1 => {
                    // Another task has polled it before.
                    _ = watched.poll(half, &mut Context::from_waker(Waker::noop()));
                    self.block_on(&bell, &Mutex::new(watched), half);
                }
                2 => self.split(&bell, watched),
                3 => {
                    {
                        let _working = watched.stream.watch().pause();
                        thread::yield_now();
                        watched.since = self.timer.now();
                    }
                    self.block_on(&bell, &Mutex::new(watched), half);
                }
                4 => {
                    _ = watched.poll(half, cx);
                    let watched = self.pass(watched);
                    self.block_on(&bell, &Mutex::new(watched), half);
                }
                _ => {
                    let watched = Mutex::new(watched);
                    (0..4).for_each(|_| self.block_on(&bell, &watched, any_half()));
                }
            }
        }
    }

    /// Another thread reads, this one writes.
    fn split(self: &Arc<Self>, bell: &Arc<Bell>, watched: Watched) {
        let watched = Arc::new(Mutex::new(watched));
        let reader = {
            let (world, watched) = (self.clone(), watched.clone());
            thread::spawn(move || world.block_on(&world.bell(), &watched, 0))
        };
        self.block_on(bell, &watched, 1);
        drop(watched);
        reader.join().expect("no panic");
    }

    /// Leaves a stream to the other tasks, and takes one of theirs if there is one.
    fn pass(&self, watched: Watched) -> Watched {
        let mut passed = self.passed.lock().unwrap();
        passed.push(watched);
        let at = thread_rng().gen_range(0..passed.len());
        passed.swap_remove(at)
    }

    /// Lets one of the latest pipes move a byte.
    fn far_end(&self) {
        let back = thread_rng().gen_range(0..8);
        let pipe = self.pipes.lock().unwrap().iter().rev().nth(back).cloned();
        if let Some(pipe) = pipe {
            pipe.change(any_half(), |direction| direction.ready += 1);
        }
    }

    /// Ends all streams: after a stop of the timer, none is idle.
    fn close(&self) {
        let mut closing = self.closing.lock().unwrap();
        *closing = true;
        let pipes = self.pipes.lock().unwrap().clone();
        drop(closing);
        for pipe in pipes {
            (0..2).for_each(|half| pipe.change(half, |direction| direction.closed = true));
        }
    }
}

fn any_half() -> usize {
    thread_rng().gen_range(0..2)
}

fn history(seen: &Arc<Seen>) {
    let clock = ManualClock::new();
    let world = Arc::new(World::new(&clock, seen));
    let tasks = [(); TASKS].map(|()| {
        let world = world.clone();
        thread::spawn(move || {
            world.task();
            world.running.fetch_sub(1, SeqCst);
        })
    });
    let stopper = thread_rng().gen_bool(0.5).then(|| {
        let world = world.clone();
        let wait = thread_rng().gen_range(0..WAIT);
        thread::spawn(move || {
            (0..wait).for_each(|_| thread::yield_now());
            let bell = Arc::new(Bell::default());
            assert!(bell.block_on(&mut world.timer.stop_async()).unwrap().is_empty());
            world.close();
        })
    });
    let mut bytes = 0..BYTES;
    while world.running.load(SeqCst) > 0 {
        bytes.next().into_iter().for_each(|_| world.far_end());
        clock.advance_in_one_jump(TICK);
        thread::yield_now();
    }
    tasks.into_iter().for_each(|task| task.join().expect("no panic"));
    stopper.into_iter().for_each(|stopper| stopper.join().expect("no panic"));
    world.passed.lock().unwrap().clear();
    world.pipes.lock().unwrap().clear();
    assert_eq!(world.streams.watched(), 0);
    let bells = std::mem::take(&mut *world.bells.lock().unwrap());
    assert!(bells.iter().all(|bell| Arc::strong_count(bell) == 1), "a waker is left");
}

#[test]
fn every_task_that_waits_for_a_stream_is_woken() {
    let iterations = iterations();
    let seen = Arc::new(Seen::default());
    let own = seen.clone();
    shuttle::check_random(move || history(&own), iterations);
    let [moved, idle, closed] =
        [&seen.moved, &seen.idle, &seen.closed].map(|ended| ended.load(SeqCst));
    println!(
        "{iterations} schedules: {moved} polls moved a byte, {idle} were idle, {closed} closed"
    );
    assert!(moved > 0 && idle > 0 && closed > 0);
}
