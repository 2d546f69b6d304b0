//! The server: what all connections share, the register of connections, and the loop that accepts.

// From what is shared up to the loop:
//   shared  `Shared`, the settings of a server
//   desk    `Desk`, the register of connections and the counts
//   handle  `Server`, the user's handle to the desk
//   room    what happens when there are too many connections
//   serve   `serve` and `Serve`
mod desk;
mod handle;
mod room;
mod serve;
mod shared;

pub use handle::Server;
pub use serve::{NoSignal, Report, Serve, serve};
pub(crate) use shared::Shared;
