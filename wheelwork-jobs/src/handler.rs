//! Handlers, whatever their payload.

use crate::job::Job;
use crate::kind::Kind;
use crate::store::Store;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

/// Why an attempt failed, as it is stored.
pub(crate) type Failure = String;

type Running = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A handler and how its jobs are run.
pub(crate) struct Handler<S: Store> {
    pub(crate) kind: Kind,
    run: Box<dyn Fn(Job<String, S>) -> Running + Send + Sync>,
}

impl<S: Store> Handler<S> {
    pub(crate) fn asynchronous<P, F, R, E>(kind: Kind, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display,
    {
        let handle = Arc::new(handle);
        let run = move |job: Job<String, S>| -> Running {
            let handle = handle.clone();
            Box::pin(async move {
                let job = job.parse().map_err(unreadable)?;
                handle(job).await.map_err(|error| error.to_string())
            })
        };
        Self { kind, run: Box::new(run) }
    }

    pub(crate) fn blocking<P, F, E>(kind: Kind, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> Result<(), E> + Send + Sync + 'static,
        E: std::fmt::Display,
    {
        let handle = Arc::new(handle);
        let run = move |job: Job<String, S>| -> Running {
            let handle = handle.clone();
            let run = move || {
                let job = job.parse().map_err(unreadable)?;
                handle(job).map_err(|error| error.to_string())
            };
            Box::pin(async move {
                match tokio::task::spawn_blocking(run).await {
                    Ok(result) => result,
                    Err(error) => Err(match error.try_into_panic() {
                        Ok(panic) => panicked(&*panic),
                        Err(error) => error.to_string(),
                    }),
                }
            })
        };
        Self { kind, run: Box::new(run) }
    }

    /// Runs a job. A panic is a failure.
    pub(crate) async fn run(&self, job: Job<String, S>) -> Result<(), Failure> {
        let mut running = (self.run)(job);
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.unwrap_or_else(|panic| std::task::Poll::Ready(Err(panicked(&*panic))))
        })
        .await
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    format!("the payload does not fit the handler: {error}")
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("no text"))
}
