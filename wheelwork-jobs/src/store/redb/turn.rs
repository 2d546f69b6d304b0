//! Who may write. The file has one write transaction at a time.
//!
//! `redb` blocks a thread until the previous transaction has ended. A task that awaits in its transaction
//! would never be polled again once other tasks block all threads of the runtime. So the thread that
//! writes and the tasks of users take turns here first, where tasks wait without a thread.

use crate::lock::lock;
use crate::store::StoreError;
use ::redb::{Database, TransactionError, WriteTransaction};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Between two attempts to begin while a transaction is open that took no turn.
const PAUSE: Duration = Duration::from_millis(1);

/// Clones share the turns.
#[derive(Clone)]
pub(super) struct Turns {
    turn: Arc<Turn<()>>,
    limit: Arc<Mutex<Duration>>,
}

impl Turns {
    pub(super) fn new(limit: Duration) -> Self {
        Self { turn: Arc::default(), limit: Arc::new(Mutex::new(limit)) }
    }

    pub(super) fn set_limit(&self, limit: Duration) {
        *lock(&self.limit) = limit;
    }

    /// Waits for a turn, and begins.
    pub(super) async fn begin(&self, database: &Database) -> Result<RedbTransaction, WriteError> {
        let limit = *lock(&self.limit);
        let begun = Instant::now();
        let turn = tokio::time::timeout(limit, self.turn.clone().lock_owned()).await;
        let turn = turn.map_err(|_| WriteError::Busy(limit))?;
        loop {
            match database.try_begin_write() {
                Ok(transaction) => return Ok(RedbTransaction { transaction, turn }),
                Err(TransactionError::WouldBlock) if begun.elapsed() < limit => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(TransactionError::WouldBlock) => return Err(WriteError::Busy(limit)),
                Err(error) => return Err(WriteError::Redb(error.into())),
            }
        }
    }
}

/// A write transaction did not begin, or did not end well.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(
        "a write transaction is open for {0:?}: expected it to end before its task awaits the jobs"
    )]
    Busy(Duration),
    #[error(transparent)]
    Redb(#[from] ::redb::Error),
}

/// A write transaction of yours, from [`Redb::begin_write`](crate::Redb::begin_write). It is a
/// [`redb::WriteTransaction`](crate::redb::WriteTransaction) apart from its end. The drop rolls it back.
pub struct RedbTransaction {
    transaction: WriteTransaction,
    /// Dropped after the transaction.
    turn: OwnedMutexGuard<()>,
}

impl RedbTransaction {
    /// Commits, on a thread that may block: the disk has it when this returns.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn commit(self) -> Result<(), StoreError> {
        match tokio::task::spawn_blocking(|| self.commit_blocking()).await {
            Ok(committed) => committed,
            Err(error) => Err(failed(error)),
        }
    }

    /// Commits on this thread, for a handler that may block.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn commit_blocking(self) -> Result<(), StoreError> {
        self.commit_now().map_err(failed)
    }

    pub(super) fn commit_now(self) -> Result<(), WriteError> {
        let Self { transaction, turn: _turn } = self;
        transaction.commit().map_err(|error| WriteError::Redb(error.into()))
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::new("commit a transaction", error)
}

impl Deref for RedbTransaction {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.transaction
    }
}

impl fmt::Debug for RedbTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbTransaction").finish_non_exhaustive()
    }
}
