//! A TCP echo server that closes idle connections, judged by ten thousand real clients.
//!
//! ```text
//! cargo run --release --example idle_connections
//! ```
//!
//! Three servers to copy, one file each. All of them touch the connection's watch after each read.
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
//! `tests/idle_connections/harness` starts the server that `--server` chooses, and the clients in a second process. They
//! talk and fall silent, and judge whether the server closes each of them at its time.

#[path = "../../tests/idle_connections/harness/mod.rs"]
mod harness;
mod mio_server;
#[path = "../terminal/mod.rs"]
mod terminal;
mod threaded_server;
mod tokio_server;
mod unread;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main()
}
