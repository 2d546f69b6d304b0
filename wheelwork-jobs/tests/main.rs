//! One program, because most of its tests wait: for a time, a process or a database.
//!
//! - `promises`: what a user is promised, case by case, on every store
//! - `faults`: what the surroundings can do
//! - `crash`: processes that are killed at any moment
//! - `oracle`: random histories of a store against a model
//! - `dashboard`: the Grafana dashboard against the metrics
//! - `common`: stores and servers for all of them

mod common;
mod crash;
mod dashboard;
mod faults;
mod oracle;
mod promises;
