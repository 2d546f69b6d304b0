//! Each limit on real sockets, by a clock that stands still until the test moves it: a client that provokes exactly
//! this limit, and one that comes close and is spared. Over HTTP/1 and over HTTP/2.

mod app;
mod behind;
mod connections;
mod floods;
mod frames;
mod http1;
mod http2;
mod links;
mod routes;
mod shutdown;
#[cfg(target_os = "linux")]
mod slow_readers;
mod stalls;
mod tunnels;
mod world;
