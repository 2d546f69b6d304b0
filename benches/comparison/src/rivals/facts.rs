//! Facts about the rivals that need no run.

use crate::catalogue::table;
use clap::ValueEnum;
use serde::{Deserialize, Deserializer, de::Error};
use std::sync::LazyLock;

pub const OURS: &str = "wheelwork";
pub const CANCEL_NEW: &str = "wheelwork-cancel-new";
pub const TOKIO: &str = "tokio-sleep";
pub const TOKIO_ALT: &str = "tokio-sleep-alt";
pub const DELAY_QUEUE: &str = "delay-queue";
/// Not a timer: the parts that no timer can do without.
pub const FLOOR: &str = "floor";
/// Not a timer: the bare future.
pub const NO_LIMIT: &str = "no-limit";
pub const NETTY_DEFAULT: &str = "netty-default";
pub const NETTY_BEST: &str = "netty-best";

/// Those that have a future that sleeps.
const SLEEPS: [&str; 6] = [OURS, TOKIO, TOKIO_ALT, "pingora-timeout", "async-io", "futures-timer"];

#[derive(Debug, Deserialize)]
pub struct Facts {
    pub name: String,
    #[serde(deserialize_with = "traits")]
    traits: Vec<Trait>,
    /// The most that it is asked to schedule in a batch, so that a slow one ends within minutes.
    pub cap: Option<u64>,
    /// Besides the default build of this program.
    pub needs: Option<String>,
    /// The limits that the reader of its figures has to know.
    pub lacks: String,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Trait {
    /// It belongs to the feature `rivals`.
    IsForeign,
    /// A timeout ends when its handle is dropped.
    DiesWithHandle,
    /// Its tick can be set.
    HasTick,
    /// An insertion costs time proportional to what is present: it gets smaller workloads.
    IsLinear,
    /// The whole process shares a single instance.
    IsGlobal,
    /// A handle outlives its timeout and never names another one.
    CancelsEnded,
    /// It belongs to one thread, which has to poll it.
    IsLocal,
    /// It has no handles.
    CannotCancel,
}

fn traits<'de, D: Deserializer<'de>>(field: D) -> Result<Vec<Trait>, D::Error> {
    let words = String::deserialize(field)?;
    let each = words.split_whitespace().map(|word| Trait::from_str(word, false));
    each.collect::<Result<_, _>>().map_err(Error::custom)
}

impl Facts {
    pub fn has(&self, one: Trait) -> bool {
        self.traits.contains(&one)
    }

    /// Whether it has a future that sleeps.
    pub fn sleeps(&self) -> bool {
        SLEEPS.contains(&&*self.name)
    }
}

static FACTS: LazyLock<Vec<Facts>> = LazyLock::new(|| table(include_str!("rivals.csv")));

/// All rivals of this build, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Facts> {
    FACTS.iter().filter(|facts| cfg!(feature = "rivals") || !facts.has(Trait::IsForeign))
}

pub fn facts(name: &str) -> Option<&'static Facts> {
    FACTS.iter().find(|facts| facts.name == name)
}
