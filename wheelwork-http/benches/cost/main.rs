//! The processor time of a keep-alive GET with all limits, against hyper with none.
//!
//! Short rounds alternate between the two servers, A B B A, so that a machine that becomes slower meanwhile
//! affects both. The time is that of all threads but the client's, so the timer's counts. With `-- hyper 1000` or
//! `-- limited 1000`, one server answers that many requests, for a profiler.

mod servers;

use kit::{cpu, median};
use servers::{KeepAlive, Which, start};
use std::error::Error;

const ROUNDS: usize = 200;
const REQUESTS: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    // For a profiler: one server, and a client that makes this many requests.
    let args: Vec<String> = std::env::args().collect();
    if let [_, which, requests, ..] = &args[..] {
        let which = if which == "hyper" { Which::Hyper } else { Which::Limited };
        let mut client = KeepAlive::connect(start(which)?)?;
        return Ok((0..requests.parse()?).try_for_each(|_| client.request("/wait"))?);
    }
    for path in ["/", "/wait"] {
        let mut plain = KeepAlive::connect(start(Which::Hyper)?)?;
        let mut limited = KeepAlive::connect(start(Which::Limited)?)?;
        let (mut ratios, mut base) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let [a, b] = [cost(&mut plain, path)?, cost(&mut limited, path)?];
            let [c, d] = [cost(&mut limited, path)?, cost(&mut plain, path)?];
            if round > 0 {
                ratios.push((b + c) / (a + d));
                base.push((a + d) / 2.0);
            }
        }
        let (base, ratio) = (median(base), median(ratios));
        println!("GET {path}: hyper {base:.2} us, all limits {:+.1} %", (ratio - 1.0) * 100.0);
    }
    Ok(())
}

/// Microseconds of one request.
fn cost(client: &mut KeepAlive, path: &str) -> Result<f64, Box<dyn Error>> {
    let begin = of_others();
    for _ in 0..REQUESTS {
        client.request(path)?;
    }
    Ok((of_others() - begin) / REQUESTS as f64)
}

/// The processor time of all threads but this one, in microseconds.
fn of_others() -> f64 {
    (cpu::of_process() - cpu::of_thread()) * 1e6
}
