//! The program `wheelwork-jobs`, run on both stores.

#[path = "../common/mod.rs"]
mod common;
mod page;
mod program;
mod refusals;
mod schema;
mod tls;

use common::{Shared, postgres, redb};
use program::{Program, Ran};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use wheelwork_jobs::{Filter, Job, JobId, Jobs, Kind, NewJob, Postgres, Retry};

/// What each test finds in the store.
struct Stored {
    waiting: JobId,
    dead: JobId,
}

/// On a runtime of its own, whose end closes the store.
fn fill<S: Shared>(store: S) -> Stored {
    Runtime::new().unwrap().block_on(async {
        let fail = |_: Job<u8, S>| async { Err::<(), _>("the printer is \u{1b}[31mon fire") };
        let kind = Kind::new("print").retry(Retry::never());
        let jobs = Jobs::builder(store).handle(kind, fail).open().await.unwrap();
        let mail = NewJob::new("mail", &json!({"to": "anna"})).unwrap().key("anna-17");
        let waiting = jobs.schedule(mail.due(Duration::from_secs(3_600))).await.unwrap();
        let dead = jobs.schedule(NewJob::new("print", &7).unwrap()).await.unwrap();
        while jobs.metrics().buried == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        jobs.stop(Duration::from_secs(10)).await.unwrap();
        Stored { waiting, dead }
    })
}

/// Runs a test on a filled store of each kind.
fn on_both(test: impl Fn(&Program, &Stored)) {
    let (store, folder) = redb();
    let stored = fill(store);
    let file = folder.path().join("jobs.redb");
    wait_until_closed(&file);
    test(&Program::new("--store", file.to_str().unwrap()), &stored);

    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let stored = fill(Postgres::new(&url).unwrap());
    test(&Program::new("--postgres", &url), &stored);
}

/// The threads of a store end some time after its last handle was dropped.
fn wait_until_closed(file: &Path) {
    let begun = Instant::now();
    while File::open(file).unwrap().try_lock().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the store is open for a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_list_is_a_table_of_80_columns() {
    on_both(|program, stored| {
        let Ran { code, out, err } = program.run(&["list"]);
        assert_eq!((code, &*err), (0, ""));
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        let line = |id: JobId| out.lines().find(|line| line.contains(&id.to_string())).unwrap();
        assert!(line(stored.waiting).contains("mail"), "{out}");
        assert!(line(stored.waiting).contains("in 59m"), "{out}");
        assert!(line(stored.dead).contains("dead"), "{out}");
    });
}

#[test]
fn a_list_can_be_narrowed() {
    on_both(|program, stored| {
        let ids = |arguments: &[&str]| -> Vec<String> {
            let list = program.json(&[&["list"], arguments].concat());
            let list = list.as_array().unwrap();
            list.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
        };
        let (waiting, dead) = (stored.waiting.to_string(), stored.dead.to_string());
        assert_eq!(ids(&["--dead"]), std::slice::from_ref(&dead));
        assert_eq!(ids(&["--alive"]), std::slice::from_ref(&waiting));
        assert_eq!(ids(&["--kind", "mail"]), [waiting]);
        assert_eq!(ids(&["--limit", "1"]), [dead]);
        assert_eq!(program.run(&["list", "--kind", "fax"]).out, "no jobs\n");
    });
}

#[test]
fn a_job_is_shown_with_all_its_fields() {
    on_both(|program, stored| {
        let mut job = program.json(&["show", &stored.waiting.to_string()]);
        let due = job["due"].take();
        assert!(due.as_str().unwrap().ends_with('Z'), "{due}");
        let expected = json!({
            "id": stored.waiting.to_string(), "kind": "mail", "key": "anna-17", "due": null,
            "state": "waiting", "priority": 0, "attempts": 0, "payload": {"to": "anna"}, "error": null,
            "done": null, "result": null, "progress": null,
        });
        assert_eq!(job, expected);

        let text = program.run(&["show", &stored.dead.to_string()]).out;
        assert!(text.contains("the printer is"), "{text}");
        assert!(!text.contains('\u{1b}'), "a job moves the cursor of the terminal: {text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    });
}

#[test]
fn a_cancelled_job_is_gone() {
    on_both(|program, stored| {
        let id = stored.waiting.to_string();
        assert_eq!(program.run(&["cancel", &id]).out, "cancelled 1 job\n");
        let again = program.run(&["cancel", &id]);
        assert_eq!((again.code, &*again.out), (1, "cancelled 0 jobs\n"));
        assert!(again.err.contains(&id), "{}", again.err);
        assert_eq!(program.run(&["show", &id]).code, 1);
    });
}

#[test]
fn a_dead_job_is_retried() {
    on_both(|program, stored| {
        let (waiting, dead) = (stored.waiting.to_string(), stored.dead.to_string());
        let changed = program.run(&["retry", "--json", &dead, &waiting]);
        assert_eq!(changed.code, 1, "a job that is not dead cannot be retried");
        let printed: Value = serde_json::from_str(&changed.out).unwrap();
        assert_eq!(printed, json!({"retried": [&dead], "refused": [waiting]}));
        let job = program.json(&["show", &dead]);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("waiting"), &json!(0)));
    });
}

#[test]
fn all_dead_jobs_of_a_kind_are_retried() {
    on_both(|program, _| {
        assert_eq!(program.run(&["retry", "--all", "--kind", "mail"]).out, "retried 0 jobs\n");
        assert_eq!(program.run(&["retry", "--all", "--kind", "print"]).out, "retried 1 job\n");
        assert_eq!(program.run(&["list", "--dead"]).out, "no jobs\n");
    });
}

#[test]
fn dead_jobs_are_pruned_by_age() {
    on_both(|program, stored| {
        assert_eq!(program.run(&["prune", "--older-than", "1h"]).out, "pruned 0 jobs\n");
        let other = ["prune", "--older-than", "0s", "--kind", "mail"];
        assert_eq!(program.run(&other).out, "pruned 0 jobs\n");
        assert_eq!(program.json(&["prune", "--older-than", "0s"]), json!({"pruned": 1}));
        assert_eq!(program.run(&["show", &stored.dead.to_string()]).code, 1);
        assert_eq!(program.run(&["show", &stored.waiting.to_string()]).code, 0);
        for wrong in ["", "d", "5", "5w", "-1s", "5\u{e4}", "999999999999999999d"] {
            let refused = program.run(&["prune", &format!("--older-than={wrong}")]);
            assert_eq!(refused.code, 2, "{wrong:?}: {}", refused.out);
        }
    });
}

/// The handler waits in its run while the program looks.
#[test]
fn kept_jobs_are_pruned_and_the_progress_of_a_run_is_shown() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let runtime = Runtime::new().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let pass = gate.clone();
    let handle = move |job: Job<u8, Postgres>| {
        let pass = pass.clone();
        async move {
            job.set_progress(3, 10, "wri\u{1b}ting <b>");
            pass.acquire().await.map(|permit| permit.forget())
        }
    };
    let kind = Kind::new("report").keep_done(Duration::from_secs(3_600));
    let jobs = Jobs::builder(Postgres::new(&url).unwrap()).handle(kind, handle);
    let jobs = runtime.block_on(jobs.open()).unwrap();
    let id = runtime.block_on(jobs.schedule(NewJob::new("report", &1).unwrap())).unwrap();
    let shown =
        || runtime.block_on(jobs.get(id)).unwrap().is_some_and(|job| job.progress.is_some());
    wait_for("a report is stored", shown);
    let (program, id) = (Program::new("--postgres", &url), id.to_string());
    let progress = &program.json(&["show", &id])["progress"];
    assert_eq!(progress, &json!({"done": 3, "of": 10, "text": "wri\u{1b}ting <b>"}));
    let table = program.run(&["show", &id]).out;
    assert!(table.contains("3 of 10, wri\\u{1b}ting <b>"), "{table}");
    let page = page::of_job(&url, &id);
    assert!(page.contains("3 of 10, wri\\u{1b}ting &lt;b&gt;"), "{page}");

    gate.add_permits(1);
    wait_for("it is done", || jobs.metrics().done == 1);
    assert_eq!(program.json(&["prune", "--done", "--older-than", "1h"]), json!({"pruned": 0}));
    assert_eq!(program.json(&["prune", "--done", "--older-than", "0s"]), json!({"pruned": 1}));
    assert_eq!(program.run(&["show", &id]).code, 1);
    let both = ["prune", "--done", "--kind", "report", "--older-than", "0s"];
    assert_eq!(program.run(&both).code, 2);
    runtime.block_on(jobs.stop(Duration::from_secs(10))).unwrap();
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not in a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stats_count_the_jobs_of_each_kind() {
    on_both(|program, _| {
        let stats = program.json(&["stats"]);
        let counts =
            |n: usize| ["kind", "waiting", "overdue", "claimed", "dead"].map(|f| &stats[n][f]);
        assert_eq!(counts(0), [&json!("mail"), &json!(1), &json!(0), &json!(0), &json!(0)]);
        assert_eq!(counts(1), [&json!("print"), &json!(0), &json!(0), &json!(0), &json!(1)]);
        assert_eq!(stats[1]["next_due"], Value::Null);
        let table = program.run(&["stats"]).out;
        assert!(table.starts_with(" kind"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    });
}

#[test]
fn kinds_are_paused_and_resumed() {
    on_both(|program, _| {
        assert_eq!(program.run(&["pause", "mail", "fax"]).out, "paused mail, fax\n");
        let again = program.run(&["--json", "pause", "print", "mail"]);
        assert_eq!(again.code, 1);
        let printed: Value = serde_json::from_str(&again.out).unwrap();
        assert_eq!(printed, json!({"paused": ["print"], "refused": ["mail"]}));
        assert!(again.err.contains("mail: it is paused already"), "{}", again.err);
        let stats = program.json(&["stats"]);
        let kinds = stats.as_array().unwrap().iter().map(|kind| (&kind["kind"], &kind["paused"]));
        let paused = json!(true);
        let expected = [json!("fax"), json!("mail"), json!("print")];
        assert!(kinds.eq(expected.iter().map(|kind| (kind, &paused))), "{stats}");
        assert!(program.run(&["stats"]).out.contains("paused"));
        assert_eq!(program.run(&["resume", "mail", "fax", "print"]).code, 0);
        let not = program.run(&["resume", "mail"]);
        assert_eq!((not.code, &*not.out), (1, "resumed no kind\n"));
        assert_eq!(program.json(&["stats"])[0]["paused"], json!(false));
    });
}

/// A kind of 60 characters leaves the id on one line.
#[test]
fn an_id_is_on_one_line_beside_a_long_kind_and_a_date_is_one_beyond_9999() {
    let (store, folder) = redb();
    let late = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let kind = format!("{}\u{1b}[2J\u{9b}\n", "k".repeat(60));
    let id = Runtime::new().unwrap().block_on(async {
        let jobs = Jobs::open(store).await.unwrap();
        let id = jobs.schedule(NewJob::new(&kind, &"\u{9b}").unwrap().due(late)).await.unwrap();
        jobs.stop(Duration::ZERO).await.unwrap();
        id
    });
    let file = folder.path().join("jobs.redb");
    wait_until_closed(&file);
    let program = Program::new("--store", file.to_str().unwrap());
    let list = program.run(&["list"]).out;
    assert!(list.contains(&id.to_string()), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let raw = program.run(&["list", "--json"]).out;
    for text in [list, raw.clone(), program.run(&["show", &id.to_string()]).out] {
        assert!(text.trim_end().chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
    let json: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!((&json[0]["kind"], &json[0]["payload"]), (&json!(kind), &json!("\u{9b}")));
    assert_eq!(json[0]["due"], json!("9999-12-31T23:59:59Z"));
}

#[test]
fn a_database_without_jobs_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.redb");
    drop(::redb::Database::create(&file).unwrap());
    let refused = Program::new("--store", file.to_str().unwrap()).run(&["list"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("no tables for jobs"), "{}", refused.err);

    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let refused = Program::new("--postgres", &url).run(&["list"]);
    assert!(refused.code == 1 && refused.err.contains("no tables for jobs"), "{}", refused.err);
    let name = url.rsplit('/').next().unwrap();
    let tables = server.psql(name, "SELECT count(*) FROM pg_class WHERE relname ~ 'wheelwork'");
    assert_eq!(tables, "0");
}

/// The first page of 200,000 jobs is read by the indexes, and pages follow each other.
#[test]
fn a_list_of_many_jobs_is_read_by_an_index() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let runtime = Runtime::new().unwrap();
    let jobs = runtime.block_on(Jobs::open(Postgres::new(&url).unwrap())).unwrap();
    let name = url.rsplit('/').next().unwrap();
    server.psql(
        name,
        "INSERT INTO wheelwork_jobs (id, kind, due, payload, dead, owner)
         SELECT gen_random_uuid(), 'k' || n % 3, now() + n * interval '1 second', 'null', n % 4 = 0,
             CASE WHEN n % 4 = 1 THEN n % 3 END
         FROM generate_series(1, 200000) AS n",
    );
    let (mut after, mut seen) = (None, Vec::new());
    for _ in 0..3 {
        let filter = Filter { limit: 10, after, ..Filter::default() };
        let page = runtime.block_on(jobs.list(filter)).unwrap();
        assert_eq!(page.len(), 10);
        after = page.last().map(|job| (job.due, job.id));
        seen.extend(page.iter().map(|job| job.due));
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(seen[29].duration_since(seen[0]).unwrap(), Duration::from_secs(29));
    let read = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables
         WHERE relname = 'wheelwork_jobs'";
    runtime.block_on(jobs.stop(Duration::ZERO)).unwrap();
    std::thread::sleep(Duration::from_secs(1)); // a connection that ends tells its counts
    let read: u64 = server.psql(name, read).parse().unwrap();
    assert!(read < 10_000, "three pages have read {read} rows");
}

/// A node fails each job again as fast as the program revives it.
#[test]
fn a_retry_of_all_ends_though_they_fail_again() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let runtime = Runtime::new().unwrap();
    let node = runtime.block_on(async {
        let fail = |_: Job<u8, Postgres>| async { Err::<(), _>("no") };
        let kind = Kind::new("print").retry(Retry::never());
        let store = Postgres::new(&url).unwrap();
        let node = Jobs::builder(store).handle(kind, fail).open().await.unwrap();
        let all = node.schedule_all((0..50).map(|n| NewJob::new("print", &n).unwrap())).await;
        assert!(all.iter().all(Result::is_ok));
        while node.metrics().buried < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        node
    });
    let out = Program::new("--postgres", &url).run(&["retry", "--all"]).out;
    assert_eq!(out, "retried 50 jobs\n");
    runtime.block_on(node.stop(Duration::from_secs(10))).unwrap();
}
