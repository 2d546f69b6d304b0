//! The spans and events of the feature `tracing`.

#[path = "../common/mod.rs"]
mod common;
mod logger;
mod recorder;
mod spans;
