//! A web service whose orders lapse after half an hour without payment: axum, PostgreSQL, and jobs in the
//! transactions of the service.
//!
//! ```console
//! $ cargo run --features postgres --example orders -- postgres://user@host/name
//! $ curl -X POST localhost:8080/orders -d '{"customer": "anna", "item": "a book"}' -H content-type:application/json
//! {"id":1,"state":"open"}
//! $ curl -X POST localhost:8080/orders/1/pay
//! $ curl localhost:8080/orders/1
//! $ kill -TERM $(pgrep orders)
//! ```
//!
//! - `web`: requests; an order and its jobs are stored in one transaction
//! - `lapse`: the job that ends an order, with its work in one transaction
//! - `remind`: a job that works on any store, and its test on virtual time without a database
//!
//! To begin from a copy:
//!
//! ```toml
//! [dependencies]
//! axum = "0.8"
//! deadpool-postgres = "0.14"
//! serde = { version = "1", features = ["derive"] }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread", "signal"] }
//! wheelwork-jobs = { path = "../wheelwork/wheelwork-jobs", default-features = false, features = ["postgres"] }
//!
//! [dev-dependencies] # the test's store
//! wheelwork-jobs = { path = "../wheelwork/wheelwork-jobs", features = ["redb"] }
//! ```

mod lapse;
mod remind;
mod web;

use deadpool_postgres::{Manager, Pool, Runtime};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use wheelwork_jobs::{Job, Jobs, Kind, Postgres, Retry};

pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// How long an order may stay unpaid, and when its customer is reminded.
#[derive(Clone, Copy)]
pub struct Terms {
    pub remind_after: Duration,
    pub lapse_after: Duration,
}

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS orders (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    customer text NOT NULL,
    item text NOT NULL,
    state text NOT NULL DEFAULT 'open'
)";

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("expected: orders URL [SECONDS [ADDRESS]]")?;
    let lapse_after = arguments.next().map(|seconds| seconds.parse()).transpose()?.unwrap_or(1800);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let lapse_after = Duration::from_secs(lapse_after);
    let terms = Terms { remind_after: lapse_after / 2, lapse_after };

    // Connections of the service. The jobs have their own, and share none with it.
    let manager = Manager::new(url.parse()?, wheelwork_jobs::tokio_postgres::NoTls);
    let pool = Pool::builder(manager).max_size(16).runtime(Runtime::Tokio1).build()?;
    pool.get().await?.batch_execute(TABLE).await?;

    let retry = Retry::default().attempts(8).first(Duration::from_secs(1));
    let its_pool = pool.clone();
    let jobs = Jobs::builder(Postgres::new(&url)?)
        // At most as many at once as half of the pool has connections: the others are for requests.
        .handle(Kind::new(lapse::KIND).concurrency(8).retry(retry), move |job| {
            lapse::handle(job, its_pool.clone())
        })
        .handle(Kind::new(remind::KIND).retry(retry), |job: Job<_, _>| {
            remind::handle(job, async |mail| {
                println!("mail: {mail}");
                Ok(())
            })
        })
        .open()
        .await?;

    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let service = web::Service { pool, jobs: jobs.clone(), terms };
    let server = axum::serve(listener, web::router(service)).with_graceful_shutdown(terminated());
    tokio::select! {
        served = server => served?, // after SIGTERM, and the requests that were under way
        ended = jobs.ended() => ended?, // an error if the node has died: then the process should end too
    }
    // What has not begun is given back at once, so that other nodes run it. What runs has ten seconds.
    let stopped = jobs.stop(Duration::from_secs(10)).await?;
    println!(
        "stopped: {} handlers still ran, {} jobs were given back",
        stopped.still_running, stopped.given_back
    );
    Ok(())
}

/// Waits for SIGTERM, or for Ctrl-C.
async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut term) => {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => eprintln!("cannot wait for SIGTERM: {error}"),
    }
}
