//! Tests of what a service sees of the timer: its metrics in Prometheus, its events, and its sleeps in
//! tokio-console.

mod events;
mod scrape;

pub use events::{Event, Events};
pub use scrape::{Exporter, Scrape};
