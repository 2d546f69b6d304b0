//! Schedules the messages of a plan, and collects what was sent.

use super::clock::Shared;
use super::cluster::{Cause, Cluster, ClusterError, Outage};
use super::evidence::Evidence;
use super::node::{KIND, LIVENESS, LOOK, PATIENCE, Report};
use super::plan::Plan;
use super::report::Live;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use wheelwork_jobs::{Jobs, NewJob, PayloadError, ScheduleError, Store, StoreError};

/// Messages that fall into the same step are scheduled together.
const STEP: Duration = Duration::from_millis(5);
/// The most that are scheduled together.
const BATCH: usize = 2_000;

/// The messages could not be scheduled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConductError {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

pub(crate) struct Conduct<'a, S: Store> {
    plan: Plan,
    jobs: &'a Jobs<S>,
    clock: Shared<S>,
    reported: Receiver<Report>,
    /// Which messages were sent, and how many of them.
    once: Vec<bool>,
    messages: usize,
    last_news: Instant,
    live: Live,
    evidence: Evidence,
}

impl<'a, S: Store> Conduct<'a, S> {
    pub(crate) fn new(
        plan: Plan,
        jobs: &'a Jobs<S>,
        clock: Shared<S>,
        reported: Receiver<Report>,
    ) -> Self {
        let evidence = Evidence { begun: clock.get().now(), ..Evidence::default() };
        Self {
            once: vec![false; plan.messages.len()],
            messages: 0,
            plan,
            jobs,
            clock,
            reported,
            last_news: Instant::now(),
            live: Live::default(),
            evidence,
        }
    }

    /// Returns when every message was sent and the store is empty, or nothing happens any more.
    pub(crate) async fn run(
        mut self,
        mut cluster: Option<&mut Cluster>,
    ) -> Result<Evidence, ConductError> {
        let begun = Instant::now();
        let mut step = tokio::time::interval(STEP);
        let mut looked = begun;
        while self.last_news.elapsed() < PATIENCE + LIVENESS {
            step.tick().await;
            self.schedule(begun.elapsed()).await?;
            self.collect();
            if let Some(cluster) = &mut cluster {
                cluster.step(self.clock.get().now())?;
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                self.clock.keep_up().await;
                let state = cluster.as_ref().map(|cluster| cluster.state());
                self.live.show(self.evidence.not_before.len(), self.messages, state);
                if self.messages == self.plan.messages.len() && self.is_empty().await? {
                    break;
                }
            }
        }
        self.live.clear();
        if let Some(cluster) = cluster {
            cluster.stop(self.clock.get().now())?;
            self.add_outages(std::mem::take(&mut cluster.outages));
        }
        self.collect();
        Ok(self.evidence)
    }

    /// Schedules what is to be scheduled by now.
    async fn schedule(&mut self, elapsed: Duration) -> Result<(), ConductError> {
        loop {
            let first = self.evidence.not_before.len();
            let rest = &self.plan.messages[first..];
            let ready = rest.iter().take(BATCH).take_while(|message| message.at <= elapsed);
            let (clock, mut batch) = (self.clock.get(), Vec::new());
            let now = clock.now() - clock.slack();
            for (number, message) in (first as u64..).zip(ready) {
                batch.push(NewJob::new(KIND, &number)?.due(message.delay));
                self.evidence.not_before.push(now + message.delay.as_micros() as u64);
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.last_news = Instant::now();
            for result in self.jobs.schedule_all(batch).await {
                result?;
            }
        }
    }

    fn collect(&mut self) {
        for report in self.reported.try_iter() {
            match report {
                Report::Sent(sent) => {
                    self.last_news = Instant::now();
                    let once = self.once.get_mut(sent.message as usize);
                    if once.is_some_and(|once| !std::mem::replace(once, true)) {
                        self.messages += 1;
                    }
                    self.evidence.sent.push(sent);
                }
                Report::Lapsed { node, at } => {
                    let from = at - (LIVENESS + 2 * LOOK).as_micros() as u64;
                    self.evidence.outages.push(Outage { node, cause: Cause::Lapsed, from, to: at });
                }
            }
        }
    }

    /// A node that was paused finds that its life has lapsed. That is one outage.
    fn add_outages(&mut self, outages: Vec<Outage>) {
        let is_known = |lapse: &Outage| {
            let same = |other: &&Outage| other.node == lapse.node;
            outages
                .iter()
                .filter(same)
                .any(|other| other.from <= lapse.to && lapse.from <= other.to)
        };
        self.evidence.outages.retain(|lapse| !is_known(lapse));
        self.evidence.outages.extend(outages);
    }

    async fn is_empty(&self) -> Result<bool, StoreError> {
        let kinds = self.jobs.stats().await?;
        Ok(kinds.iter().all(|kind| kind.waiting + kind.claimed + kind.dead == 0))
    }
}
