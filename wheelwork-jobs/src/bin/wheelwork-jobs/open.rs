//! The store that the command line names.

use crate::args::StoreArgs;
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
}

pub(crate) fn open(args: StoreArgs) -> Result<Opened, OpenError> {
    match args {
        StoreArgs { store: Some(path), .. } => {
            if !path.is_file() {
                return Err(OpenError::Missing(path));
            }
            match Redb::open(&path) {
                Ok(store) => Ok(Opened::Embedded(store)),
                Err(source) => Err(OpenError::Embedded { path, source }),
            }
        }
        // The group of the two arguments makes sure that this one is there. It may be empty.
        StoreArgs { postgres, .. } => {
            let store = Postgres::from_environment(&postgres.unwrap_or_default());
            store.map(Opened::Shared).map_err(OpenError::Shared)
        }
    }
}
