//! A micro-bench under criterion, and the median that it finds.

use crate::sizes::Sizes;
use criterion::{Bencher, Criterion, SamplingMode};
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::path::Path;

const SAMPLES: usize = 10;
/// Resamples for the confidence intervals, which are not shown.
const RESAMPLES: usize = 1000;

/// What criterion saves of a benchmark.
#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// The median time of an iteration, in nanoseconds. Criterion writes its files into `folder`, and
/// its text to the standard output, which nobody reads.
pub fn median(
    name: &str,
    sizes: &Sizes,
    folder: &Path,
    // Not generic: criterion's part would be compiled again for every rival and workload.
    routine: &mut dyn FnMut(&mut Bencher<'_>),
) -> io::Result<f64> {
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(SAMPLES)
        .nresamples(RESAMPLES)
        .warm_up_time(sizes.warm_up)
        .measurement_time(sizes.measurement)
        .output_directory(folder);
    let mut group = criterion.benchmark_group("comparison");
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function(name, routine);
    group.finish();
    let file = File::open(folder.join("comparison").join(name).join("new/estimates.json"))?;
    let estimates: Estimates = serde_json::from_reader(io::BufReader::new(file))?;
    Ok(estimates.median.point_estimate)
}
