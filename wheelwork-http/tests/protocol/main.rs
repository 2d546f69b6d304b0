//! What a server must do by the RFCs, whatever its limits: on real sockets, byte by byte. `docs/testing.md` lists the
//! tests of hyper's own server that have a counterpart here.

mod app;
#[path = "../limits/frames.rs"]
#[allow(dead_code)]
mod frames;
mod http1_requests;
mod http1_responses;
mod http2;
mod panics;
mod tunnels;
#[path = "../limits/world.rs"]
#[allow(dead_code)]
mod world;
