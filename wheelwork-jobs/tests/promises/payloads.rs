//! A payload or a result that is accepted can be read back.

use crate::common::{Shared, until};
use crate::on_every_store;
use serde_json::{Value, json};
use std::time::Duration;
use wheelwork_jobs::{
    Group, Job, Jobs, JsonError, Kind, NewJob, PayloadError, PayloadFault, ResultError, Retry,
};

on_every_store! {
    a_payload_is_refused_when_it_is_stored_or_read
    a_result_that_cannot_be_read_is_refused
}

/// So many arrays and objects within each other.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

fn is_deep(error: &PayloadError) -> bool {
    matches!(error.fault, PayloadFault::Json(JsonError::Unreadable(_)))
}

fn is_not_finite(error: &PayloadError) -> bool {
    matches!(error.fault, PayloadFault::Json(JsonError::NotFinite { .. }))
}

/// By each of the ways in which a job comes into a store.
async fn a_payload_is_refused_when_it_is_stored_or_read(store: impl Shared) {
    let never = |name: &str| Kind::new(name).retry(Retry::never());
    let builder = Jobs::builder(store)
        .handle(never("nested"), |_: Job<Value, _>| async { Ok::<_, String>(()) })
        .handle(never("number"), |_: Job<f64, _>| async { Ok::<_, String>(()) });
    let jobs = builder.open().await.unwrap();
    let deep = [1, 100, 127, 128, 130, 200].map(|levels| NewJob::new("nested", &nested(levels)));
    let numbers = [f64::MIN, 0.5, f64::MAX, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let numbers = numbers.map(|number| NewJob::new("number", &number));
    let mut done = 0;
    for (all, is_refused) in
        [(deep, is_deep as fn(&PayloadError) -> bool), (numbers, is_not_finite)]
    {
        for (n, job) in all.into_iter().enumerate() {
            let job = match job {
                Ok(job) => job,
                Err(error) => {
                    assert!(n >= 3 && is_refused(&error), "{error}");
                    continue;
                }
            };
            let last = Group::of([&job]).then(job.clone().key("k")).unwrap();
            jobs.schedule(job).await.unwrap();
            jobs.replace(last).await.unwrap();
            done += 2;
            let is_dead = || jobs.metrics().buried > 0;
            until("they were read", || jobs.metrics().done == done || is_dead()).await;
            assert!(!is_dead(), "it was stored, and cannot be read");
        }
    }
    assert_eq!(done, 12);
}

async fn a_result_that_cannot_be_read_is_refused(store: impl Shared) {
    let handle = |job: Job<(), _>| async move {
        job.set_result(&[0.5])?;
        let number = job.set_result(&[Some(f64::NAN), None]).unwrap_err();
        assert!(matches!(number, ResultError::Json(JsonError::NotFinite { .. })), "{number}");
        let deep = job.set_result(&nested(128)).unwrap_err();
        assert!(matches!(deep, ResultError::Json(JsonError::Unreadable(_))), "{deep}");
        Ok::<_, ResultError>(())
    };
    let kind = Kind::new("n").keep_done(Duration::from_secs(3_600)).retry(Retry::never());
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    until("it has ended", || jobs.metrics().done + jobs.metrics().buried == 1).await;
    assert_eq!(jobs.get(id).await.unwrap().unwrap().result.as_deref(), Some("[0.5]"));
}
