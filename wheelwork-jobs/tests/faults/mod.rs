//! What the surroundings can do: a database that restarts, a network that is cut or slow, a disk that is
//! full or loses what was not synced.

mod database;
mod dead_ends;
mod disk;
mod embedded;
mod measure;
mod pools;
pub mod proxy;
mod queries;
mod whole;
