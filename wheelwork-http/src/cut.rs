//! `Cut`: the report of what a limit ended.

use crate::limit::Limit;
use crate::peer::Peer;
use std::time::Duration;

/// A limit has passed: the argument of the callback of [`Serve::on_cut`](crate::Serve::on_cut).
///
/// ```
/// # use wheelwork_http::Cut;
/// fn log(cut: &Cut<'_>) {
///     eprintln!("{}: {:?} of {} after {:?}", cut.limit, cut.effect, cut.peer, cut.open_for);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Cut<'a> {
    /// The limit.
    pub limit: Limit,
    /// What it does to the connection.
    pub effect: Effect,
    /// The other end of the connection; `Local` if the server itself waits.
    pub peer: &'a Peer,
    /// How long the connection has been open.
    pub open_for: Duration,
    /// The number of requests in flight.
    pub in_flight: usize,
}

/// What a limit does at its end.
///
/// ```
/// # use wheelwork_http::{Cut, Effect};
/// fn is_harmless(cut: &Cut<'_>) -> bool {
///     cut.effect == Effect::SoftClose
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// The request is answered with an error, or its stream is reset. The connection may go on.
    Request,
    /// The connection takes no new requests, and is closed after those in flight.
    SoftClose,
    /// The connection is closed now.
    Close,
    /// The connection was refused.
    Refused,
    /// No connection was closed: the server waits until one ends.
    Wait,
}
