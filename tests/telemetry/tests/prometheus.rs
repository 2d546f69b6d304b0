//! The metrics of a timer and of an idle manager, scraped over HTTP from the Prometheus exporter.

use std::time::Duration;
use telemetry::{Exporter, Scrape};
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::metrics::Metrics;
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock};

const TICK: Duration = Duration::from_millis(100);

fn timer_named(name: &str, builder: Builder) -> (HashedWheelTimer, ManualClock) {
    let clock = ManualClock::new();
    let timer = builder.thread_name(name).clock(clock.clone()).build().expect("a timer");
    (timer, clock)
}

/// A timer for which every counter has a value of its own, except for those that stay zero.
fn eventful(name: &str) -> (HashedWheelTimer, ManualClock) {
    let executor = |job: Job| {
        job.run();
        Ok(())
    };
    let builder = HashedWheelTimer::builder().max_pending_timeouts(5).executor(executor);
    let (timer, clock) = timer_named(name, builder);
    timer.new_periodic(|| (), 2 * TICK).expect("a timeout");
    timer.new_timeout(|| panic!("a bad task"), TICK).expect("a timeout");
    let kept = [9, 9, 9].map(|ticks| timer.new_timeout(|| (), ticks * TICK).expect("a timeout"));
    assert!(timer.new_timeout(|| (), TICK).is_err(), "the limit");
    kept[0].reschedule(10 * TICK).expect("pending");
    assert!(kept[1].cancel());
    (0..8).for_each(|_| clock.advance_in_one_jump(TICK));
    clock.advance_in_one_jump(40 * TICK); // late
    (timer, clock)
}

fn counters(m: &Metrics) -> [(&'static str, u64); 16] {
    [
        ("scheduled_total", m.scheduled),
        ("rearmed_total", m.rearmed),
        ("rescheduled_total", m.rescheduled),
        ("expired_total", m.expired),
        ("cancelled_total", m.cancelled),
        ("returned_total", m.returned),
        ("rejected_total", m.rejected),
        ("panicked_total", m.panicked),
        ("refused_total", m.refused),
        ("abandoned_total", m.abandoned),
        ("passes_with_backlog_total", m.passes_with_backlog),
        ("ticks_skipped_total", m.ticks_skipped),
        ("wakeups_total", m.wakeups),
        ("sweeps_total", m.sweeps),
        ("pending", m.pending),
        ("slots", m.slots),
    ]
}

fn assert_same(scrape: &Scrape, timer: &str, metrics: &Metrics) {
    for (name, value) in counters(metrics) {
        let name = format!("wheelwork_{name}");
        assert_eq!(scrape.value(&name, &[("timer", timer)]), Some(value as f64), "{name}");
    }
}

#[test]
fn a_scrape_has_every_count_of_the_timer() {
    let exporter = Exporter::start();
    let (timer, _clock) = eventful("counts");
    assert_eq!(timer.stop().expect("a stop").len(), 1, "the periodic one");
    let metrics = timer.metrics();
    assert!(metrics.rejected > 0 && metrics.panicked > 0 && metrics.ticks_skipped > 0);
    timer.publish_metrics();
    assert_same(&exporter.scrape(), "counts", &metrics);
}

#[test]
fn the_histogram_has_each_lateness_once_however_often_it_is_published() {
    let exporter = Exporter::start();
    let (timer, clock) = eventful("lateness");
    (0..3).for_each(|_| timer.publish_metrics());
    clock.advance_in_one_jump(TICK);
    timer.stop().expect("a stop");
    timer.publish_metrics();
    let (scrape, lateness) = (exporter.scrape(), timer.metrics().lateness);
    let value = |name, more: &[_]| {
        let labels: Vec<_> = [("timer", "lateness")].iter().chain(more).copied().collect();
        scrape.value(name, &labels).expect(name)
    };
    assert_eq!(value("wheelwork_lateness_seconds_count", &[]), lateness.count() as f64);
    let at_most = |limit: Duration| {
        lateness.buckets().filter(|(end, _)| *end <= limit).map(|(_, n)| n).sum::<u64>() as f64
    };
    for (label, limit) in [("0.001", 1), ("0.1", 100), ("1", 1000)] {
        let bucket = value("wheelwork_lateness_seconds_bucket", &[("le", label)]);
        assert_eq!(bucket, at_most(Duration::from_millis(limit)), "{label}");
    }
    assert!(at_most(Duration::from_secs(1)) < lateness.count() as f64, "one was later");
    let max = value("wheelwork_lateness_max_seconds", &[]);
    assert_eq!(max, lateness.max().as_secs_f64());
}

#[test]
fn timers_of_different_names_have_their_own_series() {
    let exporter = Exporter::start();
    let (first, _clock) = timer_named("first", HashedWheelTimer::builder());
    let (second, _clock) = timer_named("second", HashedWheelTimer::builder());
    first.new_timeout(|| (), TICK).expect("a timeout");
    [&first, &second].iter().for_each(|timer| timer.publish_metrics());
    let scrape = exporter.scrape();
    let pending = |timer| scrape.value("wheelwork_pending", &[("timer", timer)]);
    assert_eq!((pending("first"), pending("second")), (Some(1.0), Some(0.0)));
}

#[test]
fn a_scrape_has_every_count_of_the_idle_manager() {
    let exporter = Exporter::start();
    let (timer, clock) = timer_named("connections", HashedWheelTimer::builder());
    let idle = IdleTimeouts::new(&timer, |bad: &mut bool, _| {
        assert!(!*bad, "a bad callback");
        Answer::KeepWatching
    });
    let policy = IdlePolicy::new().both(TICK);
    let watches = [false, true].map(|bad| idle.watch(bad, &policy).expect("a watch"));
    clock.advance_in_one_jump(TICK);
    idle.publish_metrics("clients");
    let scrape = exporter.scrape();
    let labels = [("timer", "connections"), ("manager", "clients")];
    let value = |name, more: &[_]| {
        scrape.value(name, &labels.iter().chain(more).copied().collect::<Vec<_>>())
    };
    assert_eq!(value("wheelwork_idle_watched", &[]), Some(2.0));
    assert_eq!(value("wheelwork_idle_panicked_total", &[]), Some(idle.panicked() as f64));
    assert!(idle.panicked() > 0);
    for (kind, count) in [("reader", 0.0), ("writer", 0.0), ("both", 2.0), ("timer_stopped", 0.0)] {
        let reported = value("wheelwork_idle_reported_total", &[("kind", kind)]);
        assert_eq!(reported, Some(count), "{kind}");
    }
    drop(watches);
}

#[test]
fn every_metric_has_a_help_text_and_the_type_of_its_name() {
    let exporter = Exporter::start();
    let (timer, _clock) = eventful("described");
    timer.publish_metrics();
    let idle = IdleTimeouts::new(&timer, |_: &mut (), _| Answer::StopWatching);
    idle.publish_metrics("none");
    let scrape = exporter.scrape();
    let described = scrape.described();
    for (name, ..) in scrape.series() {
        let parts = ["_bucket", "_sum", "_count"];
        let metric = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
        let kind = described.get(metric).unwrap_or_else(|| panic!("no help for {metric}"));
        assert_eq!(kind == "counter", metric.ends_with("_total"), "{metric} is a {kind}");
    }
    assert_eq!(described["wheelwork_lateness_seconds"], "histogram");
    assert_eq!(described["wheelwork_pending"], "gauge");
}
