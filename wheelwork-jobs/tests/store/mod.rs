//! Tests that need what no user has: the calls of a store. They are unit tests of the library.

mod complete;
mod everywhere;
mod flaky;
mod health;
mod locks;
mod lost_answers;
mod many;
mod nodes;
mod notices;
mod oracle;
mod pause;
mod poison;
mod priorities;
#[allow(dead_code)] // tests/faults has the rest
#[path = "../faults/proxy.rs"]
mod proxy;
mod revoke;
mod room;
mod standby;
mod stop;
mod unmark;
