use super::{pending as pending_of, *};

fn counted(tallies: &[Tally]) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.count(tallies.iter());
    let Metrics { scheduled, rearmed, expired, cancelled, returned, pending, .. } = metrics;
    assert_eq!(scheduled + rearmed, expired + cancelled + returned + pending, "{metrics:?}");
    assert_eq!(pending_of(tallies.iter()), pending);
    metrics
}

/// Ten timeouts were scheduled.
fn ten() -> [Tally; 3] {
    let tallies = [(); 3].map(|()| Tally::default());
    tallies[0].scheduled.add(6);
    tallies[1].scheduled.add_shared(4);
    tallies
}

#[test]
fn rule_01_pending_is_the_sum_of_all_tallies() {
    let metrics = counted(&ten());
    assert_eq!((metrics.scheduled, metrics.pending), (10, 10));
}

#[test]
fn rule_01_each_end_is_counted_once() {
    type Ended = fn(&Metrics) -> u64;
    type Pick = fn(&Tally) -> &Count;
    let ends: [(&[Pick], Ended); 7] = [
        (&[|t| &t.expired], |m| m.expired),
        (&[|t| &t.cancelled], |m| m.cancelled),
        (&[|t| &t.returned], |m| m.returned),
        // The job of a claimed timeout was withdrawn or dropped.
        (&[|t| &t.expired, |t| &t.withdrawn], |m| m.cancelled),
        (&[|t| &t.expired, |t| &t.abandoned], |m| m.cancelled),
        // A stop returned the timeout, and no caller collected it.
        (&[|t| &t.returned, |t| &t.uncollected], |m| m.cancelled),
        // The timeout was armed in a closed timer.
        (&[|t| &t.taken_back], |m| m.rejected),
    ];
    for (number, (counts, ended)) in ends.into_iter().enumerate() {
        let tallies = ten();
        // Each count of one end may be on another thread.
        counts.iter().enumerate().for_each(|(n, count)| count(&tallies[n]).add_shared(3));
        let metrics = counted(&tallies);
        assert_eq!((ended(&metrics), metrics.pending), (3, 7), "end {number}");
        let Metrics { expired, cancelled, returned, rejected, .. } = metrics;
        assert_eq!(expired + cancelled + returned + rejected, 3, "end {number}");
    }
}

#[test]
fn rule_01_a_timeout_that_goes_on_is_pending_again() {
    let tallies = ten();
    tallies[2].expired.add(1);
    tallies[1].rearmed.add_shared(1);
    let metrics = counted(&tallies);
    assert_eq!((metrics.expired, metrics.rearmed, metrics.pending), (1, 1, 10));
}

#[test]
fn refusals_are_counted() {
    let tallies = ten();
    tallies[1].rejected.add_shared(2);
    tallies[0].taken_back.add(1);
    tallies[0].abandoned.add(0);
    let metrics = counted(&tallies);
    assert_eq!((metrics.rejected, metrics.scheduled, metrics.pending), (3, 9, 9));
}

/// As the reader comes to the second tally, the worker claims a timeout, and the executor drops its job.
#[test]
fn rule_01_a_job_that_is_dropped_while_the_counts_are_read_is_taken_off_nothing_older() {
    let tallies = ten();
    tallies[0].scheduled.add(90);
    let drops = |tally| {
        if std::ptr::eq(tally, &tallies[1]) {
            tallies[0].expired.add(1);
            tallies[1].abandoned.add_shared(1);
        }
    };
    let mut metrics = Metrics::default();
    metrics.count(tallies.iter().inspect(|tally| drops(*tally)));
    let Metrics { scheduled, expired, cancelled, pending, .. } = metrics;
    assert!(expired <= scheduled, "{metrics:?}");
    assert_eq!(scheduled, expired + cancelled + pending, "{metrics:?}");
    assert!(metrics.abandoned <= cancelled, "{metrics:?}");
}

/// No count is left out.
#[test]
fn rule_01_a_tally_that_is_folded_into_another_keeps_its_counts() {
    let [from, into] = [(); 2].map(|()| Tally::default());
    from.all().iter().zip(1..).for_each(|(count, n)| _ = count.add(n));
    into.add_all(&from);
    into.add_all(&from);
    assert!(into.all().iter().zip(1..).all(|(count, n)| count.get() == 2 * n));
    assert_eq!(size_of::<Tally>(), from.all().len() * size_of::<Count>());
}
