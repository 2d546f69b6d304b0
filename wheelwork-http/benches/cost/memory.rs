//! The heap of an idle keep-alive connection with all limits, against hyper with none.

mod servers;

use servers::{KeepAlive, Which, start};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::error::Error;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CONNECTIONS: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let [plain, limited] = [idle_connection(Which::Hyper)?, idle_connection(Which::Limited)?];
    println!("an idle connection: hyper {plain:.0} bytes, all limits {:+.0}", limited - plain);
    Ok(())
}

/// Bytes of a connection that has answered a request.
fn idle_connection(which: Which) -> Result<f64, Box<dyn Error>> {
    let address = start(which)?;
    let mut clients = Vec::with_capacity(2 * CONNECTIONS);
    // What grows with the number of connections has grown by then.
    connect(CONNECTIONS, address, &mut clients)?;
    let region = Region::new(ALLOCATOR);
    connect(CONNECTIONS, address, &mut clients)?;
    let change = region.change();
    // Both counters have what reallocations add and free.
    let live = change.bytes_allocated as f64 - change.bytes_deallocated as f64;
    Ok(live / CONNECTIONS as f64)
}

fn connect(
    n: usize,
    address: std::net::SocketAddr,
    clients: &mut Vec<KeepAlive>,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..n {
        let mut client = KeepAlive::connect(address)?;
        client.request("/wait")?;
        clients.push(client);
    }
    Ok(())
}
