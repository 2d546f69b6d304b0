//! What the surroundings can do: a database that restarts, a network that is cut or slow, a disk that is
//! full or loses what was not synced.

mod database;
mod dead_ends;
mod disk;
mod embedded;
mod flaky;
mod health;
mod locks;
mod lost_answers;
mod many;
mod measure;
mod notices;
mod poison;
mod pools;
pub mod proxy;
mod queries;
mod whole;
