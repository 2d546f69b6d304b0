//! `Limit`: the names of the limits.

use std::fmt;

/// A limit, as the reason of a [`Cut`](crate::Cut) and of a count.
///
/// ```
/// use wheelwork_http::Limit;
///
/// assert_eq!(Limit::BodyRate.to_string(), "body_rate");
/// assert!(Limit::EVERY.contains(&Limit::Idle));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::handshake`](crate::Limits::handshake)
    Handshake,
    /// [`Limits::header`](crate::Limits::header)
    Header,
    /// [`Limits::body`](crate::Limits::body)
    Body,
    /// [`Limits::body_rate`](crate::Limits::body_rate)
    BodyRate,
    /// [`Limits::body_total`](crate::Limits::body_total)
    BodyTotal,
    /// [`Limits::handler`](crate::Limits::handler)
    Handler,
    /// [`Limits::response`](crate::Limits::response)
    Response,
    /// [`Limits::response_rate`](crate::Limits::response_rate)
    ResponseRate,
    /// [`Limits::idle`](crate::Limits::idle)
    Idle,
    /// [`Limits::age`](crate::Limits::age)
    Age,
    /// [`Limits::ping`](crate::Limits::ping)
    Ping,
    /// [`Limits::control_frames`](crate::Limits::control_frames)
    ControlFrames,
    /// [`Limits::tunnel`](crate::Limits::tunnel)
    Tunnel,
    /// [`Limits::connections`](crate::Limits::connections), or no free descriptor
    Connections,
    /// [`Limits::connections_per_address`](crate::Limits::connections_per_address)
    ConnectionsPerAddress,
    /// [`Limits::shutdown`](crate::Limits::shutdown)
    Shutdown,
    /// The timer was stopped, or takes no more timeouts, so no limit can be kept.
    Timer,
}

impl Limit {
    /// Every limit.
    pub const EVERY: [Self; 17] = [
        Self::Handshake,
        Self::Header,
        Self::Body,
        Self::BodyRate,
        Self::BodyTotal,
        Self::Handler,
        Self::Response,
        Self::ResponseRate,
        Self::Idle,
        Self::Age,
        Self::Ping,
        Self::ControlFrames,
        Self::Tunnel,
        Self::Connections,
        Self::ConnectionsPerAddress,
        Self::Shutdown,
        Self::Timer,
    ];

    /// The name, as in the labels of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Header => "header",
            Self::Body => "body",
            Self::BodyRate => "body_rate",
            Self::BodyTotal => "body_total",
            Self::Handler => "handler",
            Self::Response => "response",
            Self::ResponseRate => "response_rate",
            Self::Idle => "idle",
            Self::Age => "age",
            Self::Ping => "ping",
            Self::ControlFrames => "control_frames",
            Self::Tunnel => "tunnel",
            Self::Connections => "connections",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::Shutdown => "shutdown",
            Self::Timer => "timer",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
