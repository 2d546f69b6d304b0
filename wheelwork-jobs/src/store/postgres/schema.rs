//! The versions of the tables, and how one becomes the next.
//!
//! Version 0 means that there are none. The number is in the table `wheelwork_schema`, which is made by the
//! second version. A migration only adds: columns that have defaults, indexes, tables and functions. So the nodes that run
//! go on, whatever their version.

use super::Inner;
use super::connect::is_locked;
use super::prefix::Prefix;
use super::rows::{get, one};
use super::sql;
use crate::host;
use crate::store::Result;
use std::time::Duration;

/// Each makes the version after those before it. Each can be run again.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
];

/// The last version.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// How long a migration may take that has its locks. It builds indexes.
const LIMIT: Duration = Duration::from_secs(600);

/// Before a migration is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Nodes that create the tables at the same time can hinder each other: then they exist next time.
const ATTEMPTS: usize = 5;

impl Prefix {
    /// All migrations of tables of the version `from`.
    pub(super) fn schema(&self, from: u32) -> String {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let migrations: Vec<_> =
            MIGRATIONS.iter().skip(from).map(|migration| self.apply(migration)).collect();
        migrations.join("\n")
    }
}

impl Inner {
    /// The version of the tables.
    pub(super) async fn version(&self) -> Result<u32> {
        // The connection may be one of jobs that were just stopped: then it ends, and this is sent once more.
        let mut call = self.inserts.call("look for its tables").await?;
        let rows = call.read(sql::FOUND, &[]).await?;
        let row = one(&rows)?;
        let (tables, versioned): (bool, bool) = (get(row, 0)?, get(row, 1)?);
        if !versioned {
            return Ok(u32::from(tables));
        }
        let rows = call.read(sql::VERSION, &[]).await?;
        let version: i64 = get(one(&rows)?, 0)?;
        Ok(u32::try_from(version).unwrap_or(u32::MAX))
    }

    /// Brings the tables to the last version, one after the other. A migration that has to wait for a lock gives
    /// up soon, because all nodes wait behind it, and is tried again.
    pub(super) async fn migrate(&self) -> Result<()> {
        let begun = host::now();
        let mut attempts = ATTEMPTS;
        loop {
            let version = self.version().await?;
            let migration = usize::try_from(version).ok().and_then(|n| MIGRATIONS.get(n));
            let Some(migration) = migration else { return Ok(()) };
            let action = if version == 0 { "create its tables" } else { "migrate its tables" };
            let mut call = self.inserts.call(action).await?;
            call.limit = LIMIT;
            let Err(error) = call.batch(&self.prefix.apply(migration)).await else { continue };
            drop(call);
            if is_locked(&error) {
                if host::elapsed(begun) > self.limit {
                    return Err(error);
                }
            } else if attempts == 0 {
                return Err(error);
            } else {
                attempts -= 1;
            }
            host::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::prefix::NAMES;

    #[test]
    fn a_prefix_is_before_each_name() {
        let prefix = Prefix::new("mail_").unwrap();
        let statements = [sql::CLAIM, sql::CANCEL, sql::CHANNEL];
        for statement in MIGRATIONS.into_iter().chain(statements) {
            let names = statement.matches(NAMES).count();
            let applied = prefix.apply(statement);
            assert_eq!(applied.matches("mail_wheelwork_").count(), names);
            assert_eq!(applied.matches(NAMES).count(), names);
            assert_eq!(applied.replace("mail_", ""), statement);
        }
    }

    #[test]
    fn names_with_the_longest_prefix_are_not_cut_off() {
        let schema = Prefix::new(&"x".repeat(32)).unwrap().schema(0);
        let names = schema.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        assert!(names.map(str::len).max().unwrap() <= 63 - "_pkey".len());
    }
}
