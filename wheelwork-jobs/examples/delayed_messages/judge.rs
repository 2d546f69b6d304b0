//! What the evidence shows.

use super::cluster::{Cause, Outage};
use super::evidence::Evidence;
use super::node::{LIVENESS, Sent};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// After a node has gone, its messages may be late by its liveness and this.
const GRACE: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) scheduled: u64,
    pub(crate) lost: u64,
    pub(crate) early: u64,
    /// Sendings of messages that had been sent before, by what had happened to one of the two nodes.
    /// `None` if nothing explains it.
    pub(crate) again: BTreeMap<Option<Cause>, u64>,
    /// The first two sendings that nothing explains.
    pub(crate) strange: Option<(Sent, Sent)>,
    /// How often nodes were disturbed.
    pub(crate) outages: BTreeMap<Cause, u64>,
    /// Lateness in microseconds: of all messages, of those that were due when no node was disturbed, and
    /// of the others.
    pub(crate) all: Histogram<u64>,
    pub(crate) calm: Histogram<u64>,
    pub(crate) disturbed: Histogram<u64>,
}

impl Evidence {
    pub(crate) fn judge(&self) -> Verdict {
        let unknown = self.sent.iter().filter(|one| one.message as usize >= self.not_before.len());
        let sent = self.by_message();
        let mut verdict = Verdict {
            scheduled: self.not_before.len() as u64,
            lost: sent.iter().filter(|of_message| of_message.is_empty()).count() as u64,
            early: unknown.count() as u64, // sent before they were scheduled
            again: BTreeMap::new(),
            strange: None,
            outages: BTreeMap::new(),
            all: histogram(),
            calm: histogram(),
            disturbed: histogram(),
        };
        for outage in &self.outages {
            *verdict.outages.entry(outage.cause).or_default() += 1;
        }
        for (of_message, &not_before) in sent.iter().zip(&self.not_before) {
            self.judge_one(of_message, not_before, &mut verdict);
        }
        verdict
    }

    fn judge_one(&self, sent: &[Sent], not_before: u64, verdict: &mut Verdict) {
        let Some(first) = sent.first() else { return };
        let is_early = |one: &&Sent| one.at + one.slack < one.due.max(not_before);
        verdict.early += sent.iter().filter(is_early).count() as u64;
        let late = first.lateness();
        verdict.all.saturating_record(late);
        let part = match self.is_disturbed(first.due) {
            true => &mut verdict.disturbed,
            false => &mut verdict.calm,
        };
        part.saturating_record(late);
        for pair in sent.windows(2) {
            let cause = self.cause(pair[0], pair[1]);
            *verdict.again.entry(cause).or_default() += 1;
            if cause.is_none() {
                verdict.strange.get_or_insert((pair[0], pair[1]));
            }
        }
    }

    /// Why a message was sent twice. The first node was disturbed before the end of its job was stored. Or
    /// the second one stood still after it had begun, and went on when another had taken over.
    fn cause(&self, first: Sent, second: Sent) -> Option<Cause> {
        let in_between = |outage: &&Outage| {
            let is_theirs = outage.node == first.node || outage.node == second.node;
            let in_time =
                outage.from <= second.at + second.slack && outage.to + first.slack >= first.at;
            is_theirs && in_time
        };
        self.outages.iter().find(in_between).map(|outage| outage.cause)
    }

    fn is_disturbed(&self, due: u64) -> bool {
        let after = LIVENESS.as_micros() as u64 + GRACE;
        self.outages.iter().any(|outage| (outage.from..=outage.to + after).contains(&due))
    }
}

impl Sent {
    pub(crate) fn lateness(&self) -> u64 {
        self.at.saturating_sub(self.due)
    }
}

impl Verdict {
    pub(crate) fn unexplained(&self) -> u64 {
        self.again.get(&None).copied().unwrap_or(0)
    }

    pub(crate) fn is_good(&self) -> bool {
        self.lost == 0 && self.early == 0 && self.unexplained() == 0
    }
}

/// Up to an hour, to 1 %.
fn histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 3_600_000_000, 2) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("the bounds are constants: {error:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(message: u64, node: u32, at: u64) -> Sent {
        Sent { message, node, due: 1_000, at, slack: 10 }
    }

    fn evidence(sent: &[Sent], outages: &[Outage]) -> Evidence {
        let not_before = vec![1_000; 2];
        Evidence { begun: 0, not_before, sent: sent.to_vec(), outages: outages.to_vec() }
    }

    #[test]
    fn each_message_sent_once_and_on_time_is_good() {
        let verdict = evidence(&[sent(0, 1, 1_000), sent(1, 2, 5_000)], &[]).judge();
        assert!(verdict.is_good(), "{verdict:?}");
        assert_eq!((verdict.all.len(), verdict.calm.len(), verdict.all.max() / 100), (2, 2, 40));
    }

    #[test]
    fn a_message_that_was_not_sent_is_lost() {
        let verdict = evidence(&[sent(1, 1, 1_000)], &[]).judge();
        assert_eq!((verdict.lost, verdict.is_good()), (1, false));
    }

    #[test]
    fn a_message_is_early_if_the_clock_cannot_have_reached_its_time() {
        let verdict = evidence(&[sent(0, 1, 989), sent(1, 1, 990)], &[]).judge();
        assert_eq!((verdict.early, verdict.is_good()), (1, false));
        let mut moved = evidence(&[sent(0, 1, 1_000), sent(1, 1, 1_000)], &[]);
        moved.not_before[0] = 1_011;
        assert_eq!(moved.judge().early, 1, "a due time that the store has changed is no excuse");
    }

    #[test]
    fn only_an_outage_of_a_sender_in_between_explains_a_second_sending() {
        let twice = [sent(0, 1, 1_000), sent(0, 2, 9_000), sent(1, 2, 1_000)];
        let killed = |node, at| Outage { node, cause: Cause::Killed, from: at, to: at };
        let judged = |outage| evidence(&twice, &[outage]).judge();
        assert_eq!(judged(killed(1, 5_000)).again, BTreeMap::from([(Some(Cause::Killed), 1)]));
        assert!(judged(killed(2, 8_999)).is_good());
        assert!(
            judged(killed(1, 991)).is_good(),
            "the clocks of two processes may differ by the slack"
        );
        for other in [killed(3, 5_000), killed(1, 500), killed(1, 9_500)] {
            let verdict = judged(other);
            assert_eq!((verdict.unexplained(), verdict.is_good()), (1, false), "{other:?}");
        }
    }
}
