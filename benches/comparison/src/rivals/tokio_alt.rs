//! tokio's `Sleep` on the runtime's alternative timer: a wheel for each worker thread.
//!
//! It exists only under `--cfg tokio_unstable`, which changes the rest of tokio as well. So a
//! separate build measures this rival (`equipment.rs`), and only this one.

use super::Rival;
use super::tokio_sleep::InRuntime;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub const NAME: &str = TokioAlt::NAME;

pub struct TokioAlt(Runtime);

impl Rival for TokioAlt {
    const NAME: &'static str = "tokio-sleep-alt";
    const LACKS: &'static str = "unstable; made for tasks on the runtime's workers, while a Sleep \
                                 from another thread, as here, goes through a queue; a bare Sleep: \
                                 runs no task, needs the runtime; handle must be kept";
    const DETACHES: bool = false;
    const NEEDS: &'static str = "a build with --cfg tokio_unstable";
    type Producer<'a> = InRuntime<'a>;

    fn start(_tick: Duration) -> Self {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1);
        enable_alt_timer(&mut builder);
        Self(builder.build().expect("a thread can be started"))
    }

    fn producer(&self) -> InRuntime<'_> {
        InRuntime::of(&self.0)
    }
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
