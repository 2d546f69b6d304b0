//! What a user is promised, case by case, on every store.

mod change;
#[cfg(any(feature = "sqlx", feature = "diesel-async"))]
mod clients;
mod commit;
mod everywhere;
mod fail;
mod fire;
mod groups;
mod history;
mod keys;
mod limits;
mod metrics;
mod nodes;
mod pause;
mod payloads;
#[cfg(feature = "cron")]
mod periodic;
mod priorities;
mod progress;
mod revoke;
mod schema;
mod settings;
mod stop;
mod successor;
mod transaction;
mod unique;
mod virtual_time;
