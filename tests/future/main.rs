//! The futures, on a manual clock unless a test needs real time.

#[path = "../common/mod.rs"]
mod common;
mod delay_queue;
mod interval;
mod sleep;
mod stop;
mod timeout;
mod wakers;
