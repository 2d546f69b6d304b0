//! The guide: a chapter for each task. Most end with a whole small program.
//!
//! | to do this | read |
//! |---|---|
//! | answer each request in time, or give up | [request deadlines](request_deadlines) |
//! | close connections that are silent | [idle connections](idle_connections) |
//! | ping WebSocket clients | [WebSocket pings](websocket_pings) |
//! | expire the entries of a map or cache | [expiring maps](expiring_maps) |
//! | limit what an HTTP server waits for | [HTTP servers](http_servers) |
//! | repeat something, or try it again | [periodic work](periodic_work) |
//! | sleep and limit futures | [async programs](async_programs) |
//! | wait in a library | [in a library](in_a_library) |
//! | test code with timeouts | [tests with virtual time](virtual_time) |
//! | shut down, and resume after a restart | [shutdown and restart](shutdown) |
//! | notice what is stuck | [a watchdog](a_watchdog) |
//! | know what a suspend or a stall does | [suspends and stalls](suspends) |
//! | set the tick and the buckets | [sizing] |
//! | know what the timer does | [monitoring](watching) |
//! | pick a structure | [choosing a wheel](choosing_a_wheel) |
//! | drive timeouts from your own event loop | [your own loop](own_loop) |
//! | survive a crash | [jobs that survive a crash](jobs) |
//! | port Java code | [from Netty's timer](from_netty), [from `ScheduledThreadPoolExecutor`](from_scheduled_executor) |
//! | port async code | [from `tokio::time`](from_tokio) |
//!
//! The [crate's page](crate) lists the guarantees and the limits. These modules exist only in the
//! documentation.

#[doc = include_str!("request_deadlines.md")]
pub mod request_deadlines {}

#[doc = include_str!("idle_connections.md")]
pub mod idle_connections {}

#[doc = include_str!("websocket_pings.md")]
pub mod websocket_pings {}

#[doc = include_str!("expiring_maps.md")]
pub mod expiring_maps {}

#[doc = include_str!("http_servers.md")]
pub mod http_servers {}

#[doc = include_str!("periodic_work.md")]
pub mod periodic_work {}

#[doc = include_str!("async_programs.md")]
pub mod async_programs {}

#[doc = include_str!("in_a_library.md")]
pub mod in_a_library {}

#[doc = include_str!("virtual_time.md")]
pub mod virtual_time {}

#[doc = include_str!("shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("a_watchdog.md")]
pub mod a_watchdog {}

#[doc = include_str!("suspends.md")]
pub mod suspends {}

#[doc = include_str!("sizing.md")]
pub mod sizing {}

#[doc = include_str!("watching.md")]
pub mod watching {}

#[doc = include_str!("choosing_a_wheel.md")]
#[doc = ""]
#[doc = "<div style=\"overflow-x:auto\">"]
#[doc = include_str!("../../docs/wheel-hashed.svg")]
#[doc = include_str!("../../docs/wheel-hierarchical.svg")]
#[doc = include_str!("../../docs/wheel-linux-classic.svg")]
#[doc = include_str!("../../docs/wheel-linux.svg")]
#[doc = "</div>"]
pub mod choosing_a_wheel {}

#[doc = include_str!("own_loop.md")]
pub mod own_loop {}

#[doc = include_str!("jobs.md")]
pub mod jobs {}

#[doc = include_str!("from_netty.md")]
pub mod from_netty {}

#[doc = include_str!("from_scheduled_executor.md")]
pub mod from_scheduled_executor {}

#[doc = include_str!("from_tokio.md")]
pub mod from_tokio {}
