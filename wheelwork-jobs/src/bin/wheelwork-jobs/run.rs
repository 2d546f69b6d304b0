//! The commands.

use crate::args::{Args, Command};
use crate::open::{self, Opened, open};
use crate::serve::{self, ServeError};
use crate::table::jobs_of;
use crate::{json, table};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{
    Filter, JobId, Jobs, OpenError, Peek, Postgres, State, StopError, Store, StoreError,
};

/// So many dead jobs are listed at once.
const BATCH: usize = 1_000;

/// Why a command did not do all that it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Named(#[from] open::OpenError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error("no job {0} is stored; jobs that are done are deleted unless their kind keeps them")]
    NoJob(JobId),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

pub(crate) async fn run(args: Args) -> Result<ExitCode, RunError> {
    let Args { store, json, command } = args;
    if let Command::Schema { from } = command {
        let statements = Postgres::schema(from, store.prefix.as_deref())?;
        if !statements.is_empty() {
            print(statements)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match open(store)? {
        Opened::Embedded(store) => run_on(store, json, command).await,
        Opened::Shared(store) => run_on(store, json, command).await,
    }
}

async fn run_on<S: Store>(store: S, json: bool, command: Command) -> Result<ExitCode, RunError> {
    if let Command::Migrate = command {
        return migrate(&store, json).await;
    }
    // A misspelt name must not get the tables of a store.
    let jobs = Jobs::builder(store).create_tables(false).open().await?;
    let code = obey(&jobs, json, command).await?;
    jobs.stop(Duration::from_secs(5)).await?;
    Ok(code)
}

async fn migrate<S: Store>(store: &S, json: bool) -> Result<ExitCode, RunError> {
    let from = match store.version().await? {
        0 => return Err(OpenError::NoTables.into()),
        found if found > S::VERSION => {
            return Err(OpenError::NewerTables { found, known: S::VERSION }.into());
        }
        found => found,
    };
    store.prepare().await?;
    let to = S::VERSION;
    print(if json { json::migrated(from, to) } else { format!("version {from} is now {to}") })?;
    Ok(ExitCode::SUCCESS)
}

async fn obey<S: Store>(
    jobs: &Jobs<S>,
    json: bool,
    command: Command,
) -> Result<ExitCode, RunError> {
    let now = SystemTime::now();
    match command {
        Command::List { kind, done: true, limit, .. } => {
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            let found = jobs.peek(Peek { kind, state: State::Done, skip: 0, most }).await?;
            print(if json { json::done(&found) } else { table::jobs(&found, now) })?;
        }
        Command::List { kind, dead, alive, limit, .. } => {
            let dead = (dead || alive).then_some(dead);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let found = jobs.list(Filter { kind, dead, limit, after: None }).await?;
            print(if json { json::jobs(&found) } else { table::jobs(&found, now) })?;
        }
        Command::Show { id } => {
            let job = jobs.get(id).await?.ok_or(RunError::NoJob(id))?;
            print(if json { json::job(&job) } else { table::job(&job, now) })?;
        }
        Command::Stats => {
            let kinds = jobs.stats().await?;
            print(if json { json::stats(&kinds) } else { table::stats(&kinds, now) })?;
        }
        Command::Pause { kinds } => return set_paused(jobs, json, kinds, true).await,
        Command::Resume { kinds } => return set_paused(jobs, json, kinds, false).await,
        // Those have been obeyed without jobs.
        Command::Migrate | Command::Schema { .. } => {}
        Command::Prune { older_than, done, kind } => {
            let before = now.checked_sub(older_than).unwrap_or(SystemTime::UNIX_EPOCH);
            let pruned = if done {
                jobs.prune_done(before).await?
            } else {
                jobs.prune(kind.as_deref(), before).await?
            };
            print(if json { json::pruned(pruned) } else { format!("pruned {}", jobs_of(pruned)) })?;
        }
        Command::Cancel { ids } => {
            let changed = Changed::by(ids, async |id| jobs.cancel(*id).await).await?;
            return changed.print_jobs(json, "cancelled", "expected the id of a stored job");
        }
        Command::Serve(args) => serve::run(jobs, args).await?,
        Command::Retry { ids, all, kind } => {
            let ids = if all { dead(jobs, kind).await? } else { ids };
            let mut changed = Changed::by(ids, async |id| jobs.revive(*id).await).await?;
            if all {
                changed.refused.clear(); // retried or deleted meanwhile
            }
            return changed.print_jobs(json, "retried", "expected the id of a dead job");
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn set_paused<S: Store>(
    jobs: &Jobs<S>,
    json: bool,
    kinds: Vec<String>,
    paused: bool,
) -> Result<ExitCode, RunError> {
    let (verb, why) =
        if paused { ("paused", "it is paused already") } else { ("resumed", "it is not paused") };
    let set = async |kind: &String| {
        if paused { jobs.pause(kind).await } else { jobs.resume(kind).await }
    };
    let changed = Changed::by(kinds, set).await?;
    changed.print(json, verb, table::kinds(verb, &changed.done), why)
}

/// The jobs that are dead now: those that fail again after a retry stay dead.
async fn dead<S: Store>(jobs: &Jobs<S>, kind: Option<String>) -> Result<Vec<JobId>, RunError> {
    let mut dead = Vec::new();
    let mut after = None;
    loop {
        let filter = Filter { kind: kind.clone(), dead: Some(true), limit: BATCH, after };
        let page = jobs.list(filter).await?;
        let Some(last) = page.last() else { return Ok(dead) };
        after = Some((last.due, last.id));
        dead.extend(page.iter().map(|job| job.id));
    }
}

/// The jobs or kinds that a command has changed, and those that it could not.
#[derive(Default)]
struct Changed {
    done: Vec<String>,
    refused: Vec<String>,
}

impl Changed {
    /// Changes each of them.
    async fn by<T: ToString>(
        all: Vec<T>,
        change: impl AsyncFn(&T) -> Result<bool, StoreError>,
    ) -> Result<Self, RunError> {
        let mut changed = Self::default();
        for one in all {
            let done = change(&one).await?;
            if done { &mut changed.done } else { &mut changed.refused }.push(one.to_string());
        }
        Ok(changed)
    }

    fn print_jobs(&self, json: bool, verb: &str, why: &str) -> Result<ExitCode, RunError> {
        let text = format!("{verb} {}", jobs_of(self.done.len() as u64));
        self.print(json, verb, text, why)
    }

    fn print(&self, json: bool, verb: &str, text: String, why: &str) -> Result<ExitCode, RunError> {
        print(if json { json::changed(verb, &self.done, &self.refused) } else { text })?;
        for refused in &self.refused {
            eprintln!("error: not {verb}: {}: {why}", table::printable(refused));
        }
        let all = self.refused.is_empty();
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A reader that has closed the pipe has seen enough.
fn print(text: String) -> Result<(), RunError> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
