//! Netty's `HashedWheelTimer`, driven in a JVM of its own.

use crate::failure::Failure;
use crate::measurement::Measurement;

pub const NAME: &str = "netty";
pub const LACKS: &str = "no reschedule (cancel + new), no tick below 1 ms; wakes up every tick";

/// A JVM with Netty, ready to run.
pub struct Netty;

impl Netty {
    /// Looks for Java and Netty; the error says how to install them.
    pub fn find() -> Result<Self, String> {
        Err("the driver for Netty is not part of this build".into())
    }

    pub fn version(&self) -> String {
        String::new()
    }

    pub fn run(
        &self,
        _workload: &str,
        _param: &str,
        _round: u32,
    ) -> Result<Vec<Measurement>, Failure> {
        Ok(Vec::new())
    }
}
