//! Memory of timeouts whose threads have ended.

use super::{Error, Figure};
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::Captures;
use std::io;
use std::mem;
use std::sync::Barrier;
use std::thread::{self, Builder};
use std::time::Duration;

const FAR: Duration = Duration::from_secs(3600);
const SETTLE: Duration = Duration::from_secs(2);
/// Threads that live at the same time.
const WAVE: u64 = 250;
const STACK: usize = 64 << 10;

/// Growth for each timeout, scheduled by so many threads, each of which ends.
pub fn short_lived<R: Rival>(timer: &R, threads: u64, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    let timeouts = sizes.short_lived;
    // Pays for the threads themselves before the memory is measured.
    waves(timeouts, &|| ())?;
    process::settle(SETTLE);
    let before = process::resident_bytes()?;
    waves(threads, &|| schedule(timer, timeouts / threads))?;
    process::settle(SETTLE);
    let growth = process::resident_bytes()? as f64 - before as f64;
    Ok(vec![("bytes_per_timeout", growth / timeouts as f64)])
}

fn schedule<R: Rival>(timer: &R, timeouts: u64) {
    let mut producer = timer.producer();
    for _ in 0..timeouts {
        let handle = producer.schedule(Captures([1, 2]), FAR);
        // Some timeouts need their handle to live.
        mem::forget(handle);
    }
}

/// The threads of a wave end when all of them have done their work.
fn waves(threads: u64, work: &(impl Fn() + Sync)) -> io::Result<()> {
    let mut begun = 0;
    while begun < threads {
        let wave = WAVE.min(threads - begun);
        let done = &Barrier::new(wave as usize);
        thread::scope(|scope| {
            let member = |_| {
                let thread = Builder::new().stack_size(STACK);
                let body = move || {
                    work();
                    done.wait();
                };
                thread.spawn_scoped(scope, body).map(drop)
            };
            (0..wave).try_for_each(member)
        })?;
        begun += wave;
    }
    Ok(())
}
