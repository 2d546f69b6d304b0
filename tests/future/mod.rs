//! The futures, on a manual clock unless a test needs real time.

mod delay_queue;
mod due_now;
#[cfg(feature = "hyper")]
mod hyper;
mod interval;
mod large_queue;
mod oracle;
mod sleep;
mod stop;
#[cfg(feature = "stream")]
mod stream;
mod timeout;
