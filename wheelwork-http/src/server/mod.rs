//! The server: the task of a connection, and the loop that accepts.

// From the lowest up to the loop:
//   shared  the parts of a server that runs
//   drive   the task of a connection
//   handle  `Server`, the user's handle to the register
//   room    what happens when there are too many connections
//   serve   `serve` and `Serve`
mod drive;
mod handle;
mod room;
mod serve;
mod shared;

pub use handle::Server;
pub use serve::{NoSignal, Report, Serve, serve};
