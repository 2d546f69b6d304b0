//! Tests of what a service sees of the timer: its metrics in Prometheus.

mod scrape;

pub use scrape::{Exporter, Scrape};
