//! A sleep as a *resource*, the way in which tokio-console shows those of tokio.
//!
//! The console knows a resource by the names of its spans and fields, which are tokio's: a span for the
//! resource, one for the operation on it, and one for the operation's polls. They are entered, in this
//! order, during each poll, so that the console finds the task that waits. Two kinds of events tell it
//! the rest: a state update has the time until the deadline, and a poll operation tells whether the
//! sleep was ready.
//!
//! If no subscriber wants the spans, a resource is a null pointer. Without the feature, it is nothing.

#[cfg(feature = "tracing")]
pub(super) use traced::Resource;
#[cfg(not(feature = "tracing"))]
pub(super) use untraced::Resource;

#[cfg(feature = "tracing")]
mod traced {
    use std::panic::Location;
    use std::task::Poll;
    use std::time::Duration;
    use tracing::Span;

    #[derive(Default)]
    pub(in crate::future) struct Resource(Option<Box<Spans>>);

    struct Spans {
        resource: Span,
        operation: Span,
        poll: Span,
    }

    impl Resource {
        /// A resource of the caller's source line. Calls `left` if a subscriber wants it.
        #[track_caller]
        pub(in crate::future) fn new(left: impl FnOnce() -> Duration) -> Self {
            let at = Location::caller();
            let resource = tracing::trace_span!(
                parent: None,
                "runtime.resource",
                concrete_type = "Sleep",
                kind = "timer",
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            );
            if resource.is_disabled() {
                return Self(None);
            }
            // The console takes the entered resource for the operation's.
            let operation = resource.in_scope(|| {
                tracing::trace_span!("runtime.resource.async_op", source = "Sleep::new_timeout")
            });
            let poll = tracing::trace_span!(parent: &operation, "runtime.resource.async_op.poll");
            let new = Self(Some(Box::new(Spans { resource, operation, poll })));
            new.moved(left);
            new
        }

        /// Tells the time until the deadline.
        pub(in crate::future) fn moved(&self, left: impl FnOnce() -> Duration) {
            let Some(spans) = &self.0 else { return };
            spans.resource.in_scope(|| {
                tracing::trace!(
                    target: "runtime::resource::state_update",
                    duration = u64::try_from(left().as_millis()).unwrap_or(u64::MAX),
                    duration.unit = "ms",
                    duration.op = "override",
                );
            });
        }

        /// Polls inside the spans.
        pub(in crate::future) fn poll<T>(&self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
            let Some(spans) = &self.0 else { return poll() };
            let _resource = spans.resource.enter();
            let _operation = spans.operation.enter();
            let _poll = spans.poll.enter();
            let polled = poll();
            tracing::trace!(
                target: "runtime::resource::poll_op",
                op_name = "poll_elapsed",
                is_ready = polled.is_ready(),
            );
            polled
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod untraced {
    use std::task::Poll;
    use std::time::Duration;

    #[derive(Default)]
    pub(in crate::future) struct Resource;

    impl Resource {
        #[inline]
        pub(in crate::future) fn new(_left: impl FnOnce() -> Duration) -> Self {
            Self
        }

        #[inline]
        pub(in crate::future) fn moved(&self, _left: impl FnOnce() -> Duration) {}

        #[inline]
        pub(in crate::future) fn poll<T>(&self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
            poll()
        }
    }
}
