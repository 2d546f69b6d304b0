//! A connection: its words, its deadlines, its check in the wheel, and its socket.
//!
//! The words are written by the connection's task and, on HTTP/2, by the tasks of its streams; the check reads them.
//! `docs/design.md` has the states. The words of time are nanoseconds; 0 means "not now", and `UNSTAMPED` that the
//! time is set at the end of the current poll.
//!
//! | word | means |
//! |---|---|
//! | limit | the name of one bound on what the server waits for: `Limit` |
//! | limits | the values that the user has set: `Limits` of a server, `RequestLimits` of a request |
//! | bounds | those of a wait with bytes: its longest pause and its least rate, `Bounds` |
//! | meter | measures such a wait: since when, and how many bytes it has brought, `Meter` |
//! | deadline | when a limit passes, if nothing happens before |
//! | due | a deadline has come; a meter may still find that bytes have, too |
//! | passed | a limit has ended what it bounds |
//! | verdict | what the task of a connection must do then |
//! | cut | what was ended, as the user is told: `Cut` |
//! | counts | how many were accepted and cut: `Counts` |

// From the words up to the socket:
//   settings  what all connections of a server share
//   address   a `Peer` in half the memory
//   flow      what all streams of a connection move, and may
//   record    `Record`, what limits know of a request
//   state     `Conn`, its words and deadlines
//   check     the timeout in the wheel
//   events    what happens to a connection
//   judge     what is due, and what follows
//   desk      the register of connections
//   turn      what a connection gets before it is judged
//   ping      hyper's timer for pings
//   allowance how many control frames a client may send
//   frames    where HTTP/2's frames and header blocks end
//   window    what a client of HTTP/2 may still send
//   taking    what it takes of what was written
//   inbound   what the bytes of a client are
//   stream    `Limited`, the socket
mod address;
mod allowance;
mod check;
mod desk;
mod events;
mod flow;
mod frames;
mod inbound;
mod judge;
mod ping;
mod record;
mod settings;
mod state;
mod stream;
mod taking;
mod turn;
mod window;

pub(crate) use desk::Desk;
#[cfg(test)]
pub(crate) use judge::Verdict;
pub(crate) use ping::PingTimer;
pub(crate) use record::Record;
pub(crate) use settings::{LimitsFor, OnCut, Settings};
pub(crate) use state::{Conn, Flags, Stage, UNSTAMPED};
pub(crate) use stream::{Limited, Member};
pub(crate) use turn::Turn;
