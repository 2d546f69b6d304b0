//! What an operation costs when there are many more threads than cores.

use super::micro::ScheduleCancel;
use super::{Error, Figure};
use crate::crew;
use crate::rivals::Rival;
use crate::sizes::Sizes;
use crate::task::Captures;
use std::path::Path;
use std::thread;

/// Core time for one schedule and cancel. Producers beyond the number of cores take turns, so their
/// waiting is not counted.
pub fn crowd<R: Rival>(
    timer: &R,
    producers: u64,
    sizes: &Sizes,
    folder: &Path,
) -> Result<Vec<Figure>, Error> {
    let cores = thread::available_parallelism()?.get() as u64;
    let routine = ScheduleCancel { task: Captures([1, 2]) };
    let each = sizes.crowd / producers;
    let waited = crew::measure(timer, &routine, producers, each, sizes, folder)?;
    let at_once = producers.min(cores);
    Ok(vec![("ns_per_op", waited * at_once as f64 / producers as f64)])
}
