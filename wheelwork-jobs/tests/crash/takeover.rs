//! How soon the jobs of a killed node run, by the clock of the database.

use crate::common::{connect, postgres, until};
use crate::crash::process::{Process, task};
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_postgres::Client;
use wheelwork_jobs::{Job, Jobs, JobsBuilder, NewJob, Postgres};

/// A node beats three times in it: every two seconds, which is more than [`SOON`].
const LIVENESS: Duration = Duration::from_secs(6);
/// How much later than the end of the node's life a job may run.
const SOON: Duration = Duration::from_secs(1);
const JOBS: u32 = 40;
/// Some jobs are due before the end of the node's life, and some after it.
const SPAN: Duration = Duration::from_secs(8);

fn builder(url: &str) -> JobsBuilder<Postgres> {
    Jobs::builder(Postgres::new(url).unwrap()).liveness(LIVENESS).window(2 * SPAN)
}

/// A node that holds all jobs, ends none of them, and waits to be killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test"]
async fn holder() {
    let Some(url) = task() else { return };
    let never = |_: Job<u32, _>| std::future::pending::<Result<(), String>>();
    let node = builder(&url).handle("n", never).open().await.unwrap();
    let jobs = (0..JOBS).map(|n| NewJob::new("n", &n).unwrap().due(SPAN * n / JOBS));
    assert!(node.schedule_all(jobs).await.iter().all(Result::is_ok));
    println!("held {}", node.metrics().held);
    std::future::pending::<()>().await;
}

async fn seconds(client: &Client, query: &str, time: SystemTime) -> f64 {
    client.query_one(query, &[&time]).await.unwrap().get(0)
}

/// The other node beats shortly before the life of the killed one ends. If it took over at its next beat
/// only, the jobs would be late by almost a third of the liveness. A machine that is held up makes them late as well, but
/// not each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jobs_of_a_killed_node_run_within_a_second_of_the_end_of_its_life() {
    let Some(server) = postgres::server() else { return };
    for _ in 0..5 {
        if lateness(server.database()).await <= SOON.as_secs_f64() {
            return;
        }
    }
    panic!("the jobs are late each time");
}

/// Kills a node. Returns by how many seconds its jobs are late at most.
async fn lateness(url: String) -> f64 {
    let client = connect(&url).await;
    let table = "CREATE TABLE effects (n int4 NOT NULL, due timestamptz, at timestamptz)";
    client.batch_execute(table).await.unwrap();
    let client = Arc::new(client);
    let noted = client.clone();
    let note = move |job: Job<u32, _>| {
        let client = noted.clone();
        async move {
            let effect = "INSERT INTO effects VALUES ($1, $2, clock_timestamp())";
            let done = client.execute(effect, &[&(job.payload as i32), &job.due]).await;
            done.map(|_| ()).map_err(|error| error.to_string())
        }
    };
    let other = builder(&url).handle("n", note).open().await.unwrap();
    let mut killed = Process::start("crash::takeover::holder", &url);
    let output = BufReader::new(killed.0.stdout.take().unwrap());
    let held = output.lines().map_while(Result::ok).find(|line| line.starts_with("held"));
    assert_eq!(held.as_deref(), Some("held 40"));
    killed.kill();
    let life = "SELECT expires, clock_timestamp() FROM wheelwork_nodes ORDER BY id DESC LIMIT 1";
    let life = client.query_one(life, &[]).await.unwrap();
    let (expires, now): (SystemTime, SystemTime) = (life.get(0), life.get(1));
    assert!(expires <= now + LIVENESS);

    until("all are done", || other.metrics().done == u64::from(JOBS)).await;
    assert_eq!(other.metrics().taken_over, u64::from(JOBS));
    let late = "SELECT max(extract(epoch FROM at - greatest(due, $1)))::float8 FROM effects";
    let early = "SELECT min(extract(epoch FROM at - greatest(due, $1)))::float8 FROM effects";
    let late = seconds(&client, late, expires).await;
    assert!(seconds(&client, early, expires).await >= 0.0, "taken over before its end");
    eprintln!("late by at most {late:.3} s after the end of the node's life");
    late
}
