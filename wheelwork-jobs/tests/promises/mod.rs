//! What a user is promised, case by case, on every store.

mod change;
#[cfg(any(feature = "sqlx", feature = "diesel-async"))]
mod clients;
mod commit;
mod fail;
mod fire;
mod groups;
mod history;
mod keys;
mod limits;
mod metrics;
mod payloads;
#[cfg(feature = "cron")]
mod periodic;
mod progress;
mod schema;
mod settings;
mod stop;
mod successor;
mod transaction;
mod unique;
mod virtual_time;
