//! The store that the command line names.

use crate::args::{Args, Place, StoreArgs};
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::path::PathBuf;
use wheelwork_jobs::{Postgres, Redb, StoreError};

/// Either store.
pub(crate) enum Opened {
    Embedded(Redb),
    Shared(Postgres),
}

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The embedded store would create the file: a misspelt name must not leave an empty store behind.
    #[error("no file {0:?}: expected the file of an embedded store")]
    Missing(PathBuf),
    #[error(
        "cannot open {path:?}: {source}; expected the file of an embedded store that no process has open"
    )]
    Embedded { path: PathBuf, source: StoreError },
    #[error("cannot use the database: {0}; expected a URL such as postgres://user@host/name")]
    Shared(StoreError),
    #[error(transparent)]
    Prefix(StoreError),
}

impl Place {
    /// What the command line names, or else what the environment does.
    fn or_from_environment(self) -> Self {
        let variable = |name| std::env::var_os(name);
        match self {
            Self { store: None, postgres: None } => Self {
                store: variable("WHEELWORK_JOBS_STORE").map(PathBuf::from),
                postgres: variable("WHEELWORK_JOBS_POSTGRES")
                    .map(|url| url.to_string_lossy().into_owned()),
            },
            named => named,
        }
    }
}

/// Ends the program if none is named, or two are.
pub(crate) fn open(StoreArgs { place, prefix }: StoreArgs) -> Result<Opened, OpenError> {
    match place.or_from_environment() {
        Place { store: Some(_), postgres: Some(_) } => {
            let both = "two stores: expected either --store <FILE> or --postgres <URL>";
            Args::command().error(ErrorKind::ArgumentConflict, both).exit()
        }
        Place { store: Some(path), .. } => {
            if !path.is_file() {
                return Err(OpenError::Missing(path));
            }
            match Redb::open(&path) {
                Ok(store) => Ok(Opened::Embedded(store)),
                Err(source) => Err(OpenError::Embedded { path, source }),
            }
        }
        // The URL may be empty.
        Place { postgres: Some(url), .. } => {
            let store = Postgres::from_environment(&url).map_err(OpenError::Shared)?;
            match prefix {
                Some(prefix) => store.with_prefix(&prefix).map_err(OpenError::Prefix),
                None => Ok(store),
            }
            .map(Opened::Shared)
        }
        Place { store: None, postgres: None } => {
            let missing = "no store: expected --store <FILE> or --postgres <URL>";
            Args::command().error(ErrorKind::MissingRequiredArgument, missing).exit()
        }
    }
}
