//! Spans that are exported at the interval of a batch processor, on a manual clock.

use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry_sdk::runtime::Runtime;
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor;
use opentelemetry_sdk::trace::{BatchConfigBuilder, InMemorySpanExporter, SdkTracerProvider};
use plugs::traces::TimedRuntime;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock};

const INTERVAL: Duration = Duration::from_secs(3600);

#[test]
fn spans_are_exported_at_the_interval_on_the_timer() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let exporter = InMemorySpanExporter::default();
    let config = BatchConfigBuilder::default().with_scheduled_delay(INTERVAL).build();
    let processor = BatchSpanProcessor::builder(exporter.clone(), TimedRuntime(timer.clone()))
        .with_batch_config(config)
        .build();
    let provider = SdkTracerProvider::builder().with_span_processor(processor).build();

    provider.tracer("plugs").in_span("work", |_| ());
    let (begin, exported) = (timer.now(), || exporter.get_finished_spans().unwrap().len());
    while exported() == 0 {
        clock.advance_in_one_jump(Duration::from_secs(60));
        std::thread::yield_now();
    }
    assert_eq!(exported(), 1);
    assert!(timer.now() - begin >= INTERVAL);
    provider.shutdown().unwrap();
}

/// The batch processor would export again and again.
#[test]
fn no_delay_ends_after_a_stop() {
    let timer = HashedWheelTimer::new().unwrap();
    timer.stop().unwrap();
    let delay = pin!(TimedRuntime(timer).delay(INTERVAL));
    assert!(delay.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}
