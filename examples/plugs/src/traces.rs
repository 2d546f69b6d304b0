//! OpenTelemetry: the delays of its batch processors on a `HashedWheelTimer`.

use opentelemetry_sdk::runtime::{Runtime, RuntimeChannel, Tokio};
use std::{fmt::Debug, future::pending, time::Duration};
use wheelwork::HashedWheelTimer;

/// The tasks and channels of tokio, with this timer. Pass it to `BatchSpanProcessor::builder`.
#[derive(Clone, Debug)]
pub struct TimedRuntime(pub HashedWheelTimer);

impl Runtime for TimedRuntime {
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        Tokio.spawn(future);
    }
    fn delay(&self, delay: Duration) -> impl Future<Output = ()> + Send + 'static {
        let mut sleep = self.0.sleep(delay);
        async move {
            (&mut sleep).await;
            // After a stop every sleep is ready, and the processor would export without a pause.
            if sleep.was_stopped() {
                pending().await
            }
        }
    }
}

impl RuntimeChannel for TimedRuntime {
    type Receiver<T: Debug + Send> = <Tokio as RuntimeChannel>::Receiver<T>;
    type Sender<T: Debug + Send> = <Tokio as RuntimeChannel>::Sender<T>;

    fn batch_message_channel<T: Debug + Send>(
        &self,
        capacity: usize,
    ) -> (Self::Sender<T>, Self::Receiver<T>) {
        Tokio.batch_message_channel(capacity)
    }
}
