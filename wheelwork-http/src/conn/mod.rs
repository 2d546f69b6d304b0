//! A connection: its words, its deadlines, and its check in the wheel.
//!
//! The words are written by the connection's task and, on HTTP/2, by the tasks of its streams; the check reads them.
//! `docs/design.md` has the states. The words of time are nanoseconds; 0 means "not now", and `UNSTAMPED` that the
//! time is set at the end of the present poll.

// From the words up to the task:
//   state     `Conn`, its words and deadlines
//   check     the timeout in the wheel
//   judge     what is due, and what follows
//   stream    `Limited`, the socket
//   frames    where HTTP/2's frames and header blocks end
//   drive     the task of a connection
mod check;
mod drive;
mod frames;
mod judge;
mod state;
mod stream;

pub(crate) use drive::Drive;
pub(crate) use state::{Conn, Flags, response_bounds};
pub(crate) use stream::Member;
