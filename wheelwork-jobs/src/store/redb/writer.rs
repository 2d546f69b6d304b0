//! The thread that writes, with one commit for all that waits.

use super::tables::Tables;
use super::turn::{RedbTransaction, Turns, WriteError};
use super::{Redb, Shared, Writing};
use crate::store::{Result, StoreError};
use ::redb::{Database, Error};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tokio::runtime;
use tokio::sync::oneshot;

/// The most changes that share a commit.
const GROUP: usize = 1_000;

/// A change of the tables that somebody waits for.
trait Change: Send {
    /// Changes the tables. An error rolls back the whole group.
    fn run(&mut self, at: &mut Writing<'_, '_>) -> Result<(), Arc<WriteError>>;

    /// Tells the caller what has become of it.
    fn answer(self: Box<Self>, committed: Result<(), Arc<WriteError>>);
}

struct Waiting<T, F> {
    action: &'static str,
    change: Option<F>,
    value: Option<T>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T, F> Change for Waiting<T, F>
where
    T: Send,
    F: FnOnce(&mut Writing<'_, '_>) -> Result<T, Error> + Send,
{
    fn run(&mut self, at: &mut Writing<'_, '_>) -> Result<(), Arc<WriteError>> {
        if let Some(change) = self.change.take() {
            self.value = Some(change(at).map_err(WriteError::Redb)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<WriteError>>) {
        let Self { action, value, caller, .. } = *self;
        let answer = match (committed, value) {
            (Ok(()), Some(value)) => Ok(value),
            (Ok(()), None) => Err(StoreError::new(action, "it was not tried")),
            (Err(error), _) if matches!(*error, WriteError::Busy(_)) => {
                Err(StoreError::new(action, error).undone())
            }
            (Err(error), _) => Err(StoreError::new(action, error)),
        };
        let _ = caller.send(answer); // the caller may have given up
    }
}

pub(super) struct Writer(Sender<Box<dyn Change>>);

impl Writer {
    /// Starts the thread. It ends when the writer is dropped.
    pub(super) fn start(
        database: Arc<Database>,
        shared: Arc<Shared>,
        turns: Turns,
    ) -> std::io::Result<Self> {
        let (sender, changes) = channel();
        let named = thread::Builder::new().name("wheelwork-redb".into());
        // Waits for turns.
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        named.spawn(move || {
            let begin = || runtime.block_on(turns.begin(&database));
            run(begin, &shared, &changes);
        })?;
        Ok(Self(sender))
    }
}

impl Redb {
    /// Changes the tables in the thread that writes. Returns what `change` returned, after its commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        action: &'static str,
        change: impl FnOnce(&mut Writing<'_, '_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        let (caller, answer) = oneshot::channel();
        let waiting = Waiting { action, change: Some(change), value: None, caller };
        let ended = || StoreError::new(action, "the thread that writes has ended");
        self.0.writer.0.send(Box::new(waiting)).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

type Begun = Result<RedbTransaction, WriteError>;

fn run(begin: impl Fn() -> Begun, shared: &Shared, changes: &Receiver<Box<dyn Change>>) {
    while let Ok(first) = changes.recv() {
        let mut group = vec![first];
        group.extend(changes.try_iter().take(GROUP - 1));
        let committed = commit(begin(), shared, &mut group);
        match committed {
            Ok(()) => shared.claims().committed(),
            Err(_) => shared.claims().rolled_back(),
        }
        for change in group {
            change.answer(committed.clone());
        }
    }
}

fn commit(
    transaction: Begun,
    shared: &Shared,
    group: &mut [Box<dyn Change>],
) -> Result<(), Arc<WriteError>> {
    let transaction = transaction?;
    let mut tables = Tables::open(&transaction).map_err(WriteError::Redb)?;
    for change in group {
        change.run(&mut Writing::new(&mut tables, &mut shared.claims(), shared))?;
    }
    let changed = tables.is_changed();
    drop(tables);
    if changed {
        Ok(transaction.commit_now()?)
    } else {
        Ok(()) // its drop rolls it back, without a write to the disk
    }
}
