//! Spans and events of the `tracing` facade, with the feature `tracing`. Without it, the events are lines of
//! the `log` facade, and there are no spans.

use crate::job::JobId;

/// The span of a run. It is current while the handler runs, in each of its polls.
#[derive(Clone)]
pub(crate) struct RunSpan(#[cfg(feature = "tracing")] tracing::Span);

#[cfg(feature = "tracing")]
impl RunSpan {
    /// A span for a run that begins. Its outcome is recorded at its end.
    pub(crate) fn new(kind: &str, id: JobId, key: Option<&str>, attempt: u32, node: i64) -> Self {
        let outcome = tracing::field::Empty;
        // A root: whatever span is current belongs to the node and not to the job.
        Self(tracing::info_span!(
            target: "wheelwork_jobs", parent: None, "run", kind, %id, key, attempt, node, outcome
        ))
    }

    /// Of what is no run.
    pub(crate) fn none() -> Self {
        Self(tracing::Span::none())
    }

    /// The span of the run that polls the caller.
    pub(crate) fn current() -> Self {
        Self(tracing::Span::current())
    }

    pub(crate) fn around<F: Future>(&self, run: F) -> impl Future<Output = F::Output> + use<F> {
        tracing::Instrument::instrument(run, self.0.clone())
    }

    pub(crate) fn in_scope<T>(&self, call: impl FnOnce() -> T) -> T {
        self.0.in_scope(call)
    }

    pub(crate) fn ended(&self, outcome: &str) {
        self.0.record("outcome", outcome);
    }
}

#[cfg(not(feature = "tracing"))]
impl RunSpan {
    pub(crate) fn new(_: &str, _: JobId, _: Option<&str>, _: u32, _: i64) -> Self {
        Self()
    }

    pub(crate) fn none() -> Self {
        Self()
    }

    pub(crate) fn current() -> Self {
        Self()
    }

    pub(crate) fn around<F: Future>(&self, run: F) -> F {
        run
    }

    pub(crate) fn in_scope<T>(&self, call: impl FnOnce() -> T) -> T {
        call()
    }

    pub(crate) fn ended(&self, _outcome: &str) {}
}

/// Tells something. The first word is the level; what is in brackets becomes the fields of the event.
#[cfg(feature = "tracing")]
macro_rules! tell {
    ($level:ident, [$($fields:tt)*], $($text:tt)+) => {
        tracing::$level!(target: "wheelwork_jobs", $($fields)* , $($text)+)
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! tell {
    ($level:ident, [$($fields:tt)*], $($text:tt)+) => {
        log::$level!(target: "wheelwork_jobs", $($text)+)
    };
}

pub(crate) use tell;
