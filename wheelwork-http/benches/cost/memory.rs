//! The heap of an idle keep-alive connection with all limits, against hyper with none.

mod servers;

use kit::live_bytes::{self, COUNTING, Counting};
use servers::{KeepAlive, Which, start};
use std::error::Error;

#[global_allocator]
static ALLOCATOR: &Counting = &COUNTING;

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
    let before = live_bytes::bytes();
    connect(CONNECTIONS, address, &mut clients)?;
    Ok((live_bytes::bytes() - before) as f64 / CONNECTIONS as f64)
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
