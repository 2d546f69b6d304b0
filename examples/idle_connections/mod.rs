//! TCP echo servers that close idle connections: three to copy, one file each. All of them touch the
//! connection's watch after each read.
//!
//! | server | on an idle event |
//! |---|---|
//! | `mio_server`: one event loop | the loop gets the connection's token, and closes it |
//! | `threaded_server`: a thread for each connection | the socket is shut down, which ends the read |
//! | `tokio_server`: a task for each connection | the task gets the event, and ends |
//!
//! An idle event closes nothing without one more look at the socket, because unread bytes may lie
//! there. A peer that has shut down its sending side may still be reading, so it stays until it is
//! idle.
//!
//! `cargo run --release --example idle_connections` puts them to the test: `tests/idle_connections`.

pub(crate) mod mio_server;
pub(crate) mod threaded_server;
pub(crate) mod tokio_server;
mod unread;
