//! Jobs whose handler fails.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, Retry, State};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn dead() -> Filter {
    Filter { dead: Some(true), ..Filter::default() }
}

async fn a_failed_job_runs_again_after_its_delay_until_it_is_dead(store: impl Shared) {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let notes = runs.clone();
    let handle = move |job: Job<(), _>| {
        notes.lock().unwrap().push((job.attempt, SystemTime::now()));
        async move { Err::<(), _>(format!("failure {}", job.attempt)) }
    };
    let retry = Retry::default().attempts(3).first(ms(40)).jitter(0.0);
    let kind = Kind::new("fails").retry(retry);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let job = NewJob::new("fails", &()).unwrap().key("k");
    let id = jobs.schedule(job.clone()).await.unwrap();
    until("it is dead", || jobs.metrics().buried == 1).await;

    let ran = runs.lock().unwrap().clone();
    assert_eq!(ran.iter().map(|run| run.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(ran[1].1 >= ran[0].1 + ms(40) && ran[2].1 >= ran[1].1 + ms(80));
    let listed = jobs.list(dead()).await.unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].attempts), (1, id, 3));
    assert_eq!((listed[0].state, listed[0].error.as_deref()), (State::Dead, Some("failure 3")));
    assert_eq!(jobs.metrics().retried, 2);
    assert!(!jobs.reschedule(id, ms(0)).await.unwrap()); // a dead job only revives
    jobs.schedule(NewJob::new("fails", &()).unwrap().key("k")).await.unwrap_err();

    assert!(jobs.revive(id).await.unwrap());
    until("it is dead again", || jobs.metrics().buried == 2).await;
    assert_eq!(runs.lock().unwrap().len(), 6);
    assert!(jobs.cancel(id).await.unwrap());
    assert_eq!(jobs.list(dead()).await.unwrap(), []);
    assert!(!jobs.revive(id).await.unwrap());
}

async fn a_panic_and_a_strange_payload_are_failures(store: impl Shared) {
    let panics = |_: Job<(), _>| async {
        if true { panic!("as the test wants") } else { Ok::<_, String>(()) }
    };
    let blocking_panics =
        |_: Job<(), _>| if true { panic!("as the test wants") } else { Ok::<_, String>(()) };
    let fine = |_: Job<u32, _>| async { Ok::<_, String>(()) };
    let never = |name: &str| Kind::new(name).retry(Retry::never());
    let jobs = Jobs::builder(store)
        .handle(never("panics"), panics)
        .handle_blocking(never("blocking"), blocking_panics)
        .handle(never("number"), fine)
        .open()
        .await
        .unwrap();
    jobs.schedule(NewJob::new("panics", &()).unwrap()).await.unwrap();
    jobs.schedule(NewJob::new("blocking", &()).unwrap()).await.unwrap();
    jobs.schedule(NewJob::new("number", &"seven").unwrap()).await.unwrap();
    jobs.schedule(NewJob::new("number", &7).unwrap()).await.unwrap();
    until("all have ended", || jobs.metrics().buried == 3 && jobs.metrics().done == 1).await;
    for job in jobs.list(dead()).await.unwrap() {
        let error = job.error.unwrap();
        let expected =
            if job.kind == "number" { "does not fit" } else { "panicked: as the test wants" };
        assert!(error.contains(expected), "{}: {error}", job.kind);
    }
}

on_every_store! {
    a_failed_job_runs_again_after_its_delay_until_it_is_dead
    a_panic_and_a_strange_payload_are_failures
}
