//! The futures that sleep: tokio's, pingora-timeout's, async-io's, futures-timer's.

use super::polled::{Sleep, poll_once};
use super::{Facts, PINGORA, PLAIN, TOKIO, TOKIO_ALT};
use crate::task::Nothing;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::Instant;

const BARE: Facts = Facts { detaches: false, ..PLAIN };
const GLOBAL: Facts = Facts { is_global: true, ..BARE };
/// Such a timer starts its thread with its first timeout.
const FIRST: Duration = Duration::from_millis(1);

/// tokio's `Sleep`, driven by a runtime of one worker thread: what `tokio::time::timeout` costs.
///
/// `ALT` is the runtime's alternative timer, a wheel for each worker thread. It exists only under
/// `--cfg tokio_unstable`, which changes the rest of tokio as well, so a separate build measures it.
pub struct Tokio<const ALT: bool>;

impl<const ALT: bool> Sleep for Tokio<ALT> {
    const FACTS: Facts = if ALT {
        Facts {
            name: TOKIO_ALT,
            lacks: "unstable; made for tasks on the runtime's workers, while a Sleep from another \
                    thread, as here, goes through a queue; a bare Sleep: runs no task, needs the \
                    runtime; handle must be kept",
            needs: "a build with --cfg tokio_unstable",
            ..BARE
        }
    } else {
        Facts {
            name: TOKIO,
            lacks: "a bare Sleep: runs no task, needs the runtime; handle must be kept",
            ..BARE
        }
    };
    type Timer = Runtime;
    type Guard = EnterGuard<'static>;
    type Handle = Pin<Box<tokio::time::Sleep>>;

    fn start() -> Runtime {
        runtime(ALT)
    }

    fn enter(runtime: &'static Runtime) -> EnterGuard<'static> {
        runtime.enter()
    }

    fn sleep(delay: Duration) -> Self::Handle {
        Box::pin(tokio::time::sleep(delay))
    }

    fn sleep_on_stack(delay: Duration) -> impl Future {
        tokio::time::sleep(delay)
    }

    fn reset(timeout: &mut Self::Handle, delay: Duration) -> bool {
        timeout.as_mut().reset(Instant::now() + delay);
        true
    }
}

pub fn runtime(alternative_timer: bool) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    if alternative_timer {
        enable_alt_timer(&mut builder);
    } else {
        builder.enable_time();
    }
    builder.build().expect("a thread can be started")
}

#[cfg(tokio_unstable)]
fn enable_alt_timer(builder: &mut Builder) {
    builder.enable_alt_timer();
}

/// Refuses to measure the default timer under this name.
#[cfg(not(tokio_unstable))]
fn enable_alt_timer(_builder: &mut Builder) {
    panic!("this program was built without --cfg tokio_unstable");
}

/// pingora-timeout's `sleep`. Its `timeout` hands delays above 15 minutes to tokio, and boxes its
/// timer even where the caller can pin it on the stack.
pub struct Pingora;

impl Sleep for Pingora {
    const FACTS: Facts = Facts {
        name: PINGORA,
        lacks: "runs no task; ticks of 10 ms, a wake-up in each; deadlines cut to whole \
                milliseconds; a cancelled one stays until its time; handle must be kept",
        ..GLOBAL
    };
    type Timer = ();
    type Guard = ();
    type Handle = Pin<Box<dyn Future<Output = ()>>>;

    fn start() {
        poll_once(pin!(Self::sleep_on_stack(FIRST)), Nothing);
    }

    fn enter((): &'static ()) {}

    fn sleep(delay: Duration) -> Self::Handle {
        Box::pin(pingora_timeout::sleep(delay))
    }

    fn sleep_on_stack(delay: Duration) -> impl Future {
        pingora_timeout::sleep(delay)
    }
}

/// async-io's `Timer`; its own thread drives it.
pub struct AsyncIo;

impl Sleep for AsyncIo {
    const FACTS: Facts = Facts {
        name: "async-io",
        lacks: "a bare Timer: runs no task; handle must be kept",
        cap: 200_000,
        ..GLOBAL
    };
    type Timer = ();
    type Guard = ();
    type Handle = async_io::Timer;

    fn start() {
        poll_once(pin!(Self::sleep(FIRST)), Nothing);
    }

    fn enter((): &'static ()) {}

    fn sleep(delay: Duration) -> async_io::Timer {
        async_io::Timer::after(delay)
    }

    fn reset(timeout: &mut async_io::Timer, delay: Duration) -> bool {
        timeout.set_after(delay);
        true
    }
}

/// futures-timer's `Delay`; its own thread drives it.
pub struct FuturesTimer;

impl Sleep for FuturesTimer {
    const FACTS: Facts = Facts {
        name: "futures-timer",
        lacks: "a bare Delay: runs no task; handle must be kept",
        ..GLOBAL
    };
    type Timer = ();
    type Guard = ();
    type Handle = futures_timer::Delay;

    fn start() {
        poll_once(pin!(Self::sleep(FIRST)), Nothing);
    }

    fn enter((): &'static ()) {}

    fn sleep(delay: Duration) -> futures_timer::Delay {
        futures_timer::Delay::new(delay)
    }

    fn reset(timeout: &mut futures_timer::Delay, delay: Duration) -> bool {
        timeout.reset(delay);
        true
    }
}
