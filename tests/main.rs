//! The tests that can share a process. One program links faster than many.
//!
//! `cargo test --all-features --test timer backlog::` runs one module. `Cargo.toml` lists the tests that
//! need a process of their own.

mod common;

use common::wakers;

mod backlog;
#[cfg(all(target_os = "linux", feature = "boottime"))]
mod boottime;
mod build;
mod cancel;
mod cases;
mod clock;
mod delay_line;
mod drops;
mod errors;
mod examples;
mod executor;
mod future;
mod handles;
mod idle;
mod idle_model;
#[cfg(all(feature = "tokio", feature = "futures-io"))]
mod idle_stream;
mod idle_stress;
mod lateness;
mod limit;
mod local_timer;
mod metrics;
mod oracle;
mod panics;
mod periodic;
mod placements;
mod printing;
mod replay_log;
mod runtimes;
mod schedule;
mod sleep;
#[cfg(all(feature = "aws-smithy-async", feature = "backon"))]
mod sleepers;
mod stop;
mod tasks;
mod threads;
mod ticks;
mod timed_wheel;
mod unwind_safe;
mod virtual_time;
mod watchdog;
mod wheel;
mod wheel_passes;
