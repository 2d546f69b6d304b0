//! The command line.

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use wheelwork_jobs::JobId;

/// Shows and changes the jobs of a store.
///
/// An embedded store can be open in one process only: stop the program that uses it first.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
#[command(
    after_help = "Exits with 0 if all is done, with 1 if not, such as for a job that is not \
                        there, and with 2 if an argument is wrong."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The heading of the options that say which store.
const STORE: &str = "Store";

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Prefix of the tables in PostgreSQL, before `wheelwork_`
    #[arg(long, env = "WHEELWORK_JOBS_PREFIX", global = true, help_heading = STORE)]
    pub(crate) prefix: Option<String>,
}

/// Clap would let a variable forbid the other option.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The file of an embedded store [or env: WHEELWORK_JOBS_STORE]
    #[arg(long, value_name = "FILE", global = true, help_heading = STORE)]
    pub(crate) store: Option<PathBuf>,

    /// A PostgreSQL database, such as postgres://user@host/name [or env:
    /// WHEELWORK_JOBS_POSTGRES]
    ///
    /// Missing parts come from PGHOST and the like, and from ~/.pgpass, as in psql.
    /// Pass '' to use only those. Connections are encrypted with sslmode=require.
    #[arg(long, value_name = "URL", global = true, help_heading = STORE)]
    pub(crate) postgres: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List jobs, the earliest first
    List {
        /// Only jobs of this kind
        #[arg(long)]
        kind: Option<String>,
        /// Only jobs whose attempts are used up
        #[arg(long)]
        dead: bool,
        /// Only jobs that are not dead
        #[arg(long, conflicts_with = "dead")]
        alive: bool,
        /// Jobs that are done and kept, the last first; at most 10,000 are searched
        #[arg(long, conflicts_with_all = ["dead", "alive"])]
        done: bool,
        /// Maximum number of jobs
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show all of one job, with its payload and its last error
    Show {
        /// The job's id
        id: JobId,
    },
    /// Delete jobs
    Cancel {
        /// The jobs' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<JobId>,
    },
    /// Retry dead jobs now, with new attempts
    Retry {
        /// The jobs' ids
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<JobId>,
        /// All dead jobs
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// All dead jobs of this kind
        #[arg(long, requires = "all")]
        kind: Option<String>,
    },
    /// Delete dead jobs that were due long ago, or jobs that were done long ago
    Prune {
        /// How long ago, such as 30d, 12h or 0s
        #[arg(long, value_name = "TIME", value_parser = time)]
        older_than: Duration,
        /// Jobs that are done and kept, of all kinds
        #[arg(long, conflicts_with = "kind")]
        done: bool,
        /// Only jobs of this kind
        #[arg(long)]
        kind: Option<String>,
    },
    /// Count the jobs of each kind; reads all of them
    Stats,
    /// Stop starting jobs of these kinds, on all nodes
    Pause {
        /// The kinds
        #[arg(required = true, value_name = "KIND")]
        kinds: Vec<String>,
    },
    /// Start jobs of paused kinds again
    Resume {
        /// The kinds
        #[arg(required = true, value_name = "KIND")]
        kinds: Vec<String>,
    },
    /// Bring older tables to the version of this program
    ///
    /// A node does the same when it is opened.
    Migrate,
    /// Print the SQL that makes the tables in PostgreSQL; needs no store
    Schema {
        /// Only what changes tables of this version
        #[arg(long, value_name = "VERSION", default_value_t = 0)]
        from: u32,
    },
    /// Show kinds, counts and dead jobs as a web page
    ///
    /// It only reads, unless --allow-changes is given. Each page costs the store a
    /// query with a limit. /metrics has the counts for Prometheus.
    Serve(ServeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8170")]
    pub(crate) listen: SocketAddr,
    /// Allow an address that other machines can reach
    ///
    /// Whoever reaches it sees the jobs. The server neither encrypts nor asks for a
    /// password, so put it behind a proxy that does both.
    #[arg(long)]
    pub(crate) expose: bool,
    /// A name by which browsers may ask for the page, such as that of a proxy
    #[arg(long = "host-name", value_name = "NAME")]
    pub(crate) host_names: Vec<String>,
    /// Allow users with a token to retry, cancel and delete jobs
    ///
    /// The token comes from --token-file or from the variable
    /// WHEELWORK_JOBS_TOKEN, and has at least 16 characters.
    #[arg(long)]
    pub(crate) allow_changes: bool,
    /// The file with the token
    #[arg(long, value_name = "FILE", requires = "allow_changes")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Reads a number with its unit.
fn time(text: &str) -> Result<Duration, String> {
    let expected = || format!("{text:?} is no time: expected a number and d, h, m or s");
    let (number, unit) =
        text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(expected)?;
    let seconds = match unit {
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        "s" => 1,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}
