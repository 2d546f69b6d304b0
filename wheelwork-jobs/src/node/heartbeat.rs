//! The loop of a node.
//!
//! Each turn does what is due of this, and then sleeps until the next is:
//!
//! - **join**, if the node has no number, or has to change it
//! - **beat**, three times in each liveness: it keeps the node alive, reads the clock, and finds the next
//!   free job and the next node that may die
//! - **take over**, when the life of another node has lapsed
//! - **claim**, when a free job is due within the window
//!
//! A beat is the fallback for every notice that is lost: it finds each free job at least a sixth of the
//! liveness before the job is due, because the window is at least half of it.

use super::Node;
use super::backoff::Backoff;
use crate::error::StopError;
use crate::store::{Beat, NodeId, Notice, Store, StoreError};
use crate::time::{Reading, Step, far_future};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// At most so many jobs are claimed in one call.
const BATCH: usize = 1_000;

/// The database's clock is estimated. So much later it has surely reached the end of a life.
const MARGIN: Duration = Duration::from_millis(5);

/// The command to stop.
pub(super) struct Stop {
    /// Handlers that run longer are not waited for.
    pub(super) limit: Duration,
    pub(super) done: oneshot::Sender<Result<Stopped, StopError>>,
}

/// What a stop left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Jobs whose run had not begun. Other nodes can claim them at once.
    pub given_back: usize,
    /// Handlers that were still running at the end of the limit. They go on, and other nodes can run
    /// their jobs as well.
    pub still_running: usize,
}

/// When the loop has something to do.
struct Agenda {
    beat_at: Instant,
    lapse_at: Option<Instant>,
    claim: bool,
}

impl<S: Store> Node<S> {
    /// Runs until a stop, or until the other end of `stop` is gone.
    pub(super) async fn live(self: Arc<Self>, mut stop: oneshot::Receiver<Stop>) {
        let command = if self.handlers.is_empty() {
            (&mut stop).await.ok()
        } else {
            let (notices, mut noticed) = mpsc::unbounded_channel();
            tokio::select! {
                command = self.work(&mut noticed, &mut stop) => command,
                () = self.store.listen(notices) => None,
            }
        };
        let limit = command.as_ref().map_or(Duration::ZERO, |stop| stop.limit);
        let stopped = self.wind_up(limit).await;
        if let Err(error) = &stopped {
            log::warn!("the claims were not given back: {error}");
        }
        if let Some(Stop { done, .. }) = command {
            let _ = done.send(stopped); // the caller may have given up
        }
    }

    /// Turns until a stop, which it looks for between two turns: each call of the store has its answer.
    async fn work(
        self: &Arc<Self>,
        noticed: &mut mpsc::UnboundedReceiver<Notice>,
        stop: &mut oneshot::Receiver<Stop>,
    ) -> Option<Stop> {
        let mut agenda = Agenda { beat_at: Instant::now(), lapse_at: None, claim: true };
        let mut backoff = Backoff::default();
        loop {
            match self.turn(&mut agenda).await {
                Ok(()) => backoff = Backoff::default(),
                Err(error) => {
                    self.note_error(&error);
                    tokio::select! {
                        command = &mut *stop => return command.ok(),
                        () = self.timer.sleep(backoff.next()) => continue,
                    }
                }
            }
            self.take_notices(noticed, &mut agenda);
            let next = agenda.lapse_at.map_or(agenda.beat_at, |at| at.min(agenda.beat_at));
            tokio::select! {
                biased;
                command = &mut *stop => return command.ok(),
                () = std::future::ready(()), if agenda.claim => {}
                () = self.timer.sleep_until(next) => {}
                () = self.look.notified() => agenda.claim = true,
                notice = noticed.recv() => {
                    self.take_notice(notice, &mut agenda);
                }
            }
        }
    }

    /// Does what is due. After an error, the rest is due again.
    async fn turn(self: &Arc<Self>, agenda: &mut Agenda) -> Result<(), StoreError> {
        if self.must_rejoin.load(Ordering::Acquire) {
            self.join().await?;
            agenda.beat_at = Instant::now();
        }
        let Some(me) = *self.me.read().await else { return Ok(()) };
        if Instant::now() >= agenda.beat_at {
            self.beat(me, agenda).await?;
        }
        if agenda.lapse_at.is_some_and(|at| Instant::now() >= at) {
            self.take_over(agenda).await?;
        }
        if agenda.claim && !self.must_rejoin.load(Ordering::Acquire) {
            agenda.claim = self.claim(me).await?;
        }
        Ok(())
    }

    /// Takes a new number, and keeps what this node still owns. Drops what it has lost.
    pub(super) async fn join(&self) -> Result<(), StoreError> {
        let mut me = self.me.write().await;
        let keep = self.held().claims();
        let asked = Instant::now();
        let joined = self.store.join(*me, &keep, self.liveness).await?;
        if let Some(old) = *me {
            let dropped = self.drop_all_but(&joined.kept);
            let (NodeId(old), NodeId(new)) = (old, joined.node);
            log::warn!("node {old} goes on as {new}, without {dropped} of its jobs");
        }
        *me = Some(joined.node);
        self.must_rejoin.store(false, Ordering::Release);
        *super::lock(&self.lease) = far_future(asked, self.liveness);
        self.clock().update(joined.clock);
        Ok(())
    }

    async fn beat(self: &Arc<Self>, me: NodeId, agenda: &mut Agenda) -> Result<(), StoreError> {
        let asked = Instant::now();
        let beat = self.store.beat(me, self.liveness, &self.kinds).await?;
        let Beat { alive, clock, next_lapse, next_due } = beat;
        self.set_clock(clock);
        agenda.beat_at = far_future(asked, self.liveness / 3);
        if !alive {
            self.counts.lapsed.add(1);
            log::warn!("node {} was taken for dead", me.0);
            self.rejoin();
            return Ok(());
        }
        *super::lock(&self.lease) = far_future(asked, self.liveness);
        let database = *self.clock();
        agenda.lapse_at = next_lapse.map(|lapse| database.instant_of(lapse) + MARGIN);
        let horizon = database.least(Instant::now()).after(self.window);
        agenda.claim |= next_due.is_some_and(|due| due <= horizon);
        Ok(())
    }

    fn set_clock(self: &Arc<Self>, reading: Reading) {
        let step = self.clock().update(reading);
        if let Some(step) = step {
            match step {
                Step::Forward(by) => log::warn!("the database's clock jumped forward by {by:?}"),
                Step::Back(by) => log::warn!("the database's clock jumped back by {by:?}"),
            }
            self.counts.clock_steps.add(1);
            self.rearm_all();
        }
    }

    async fn take_over(&self, agenda: &mut Agenda) -> Result<(), StoreError> {
        let freed = self.store.take_over().await?;
        if freed > 0 {
            log::warn!("took over {freed} jobs of nodes that have died");
            self.counts.taken_over.add(freed);
            agenda.claim = true;
        }
        agenda.lapse_at = None;
        agenda.beat_at = Instant::now(); // finds the next one
        Ok(())
    }

    /// Claims a batch. True if there may be more.
    async fn claim(self: &Arc<Self>, me: NodeId) -> Result<bool, StoreError> {
        let reserved = (0..self.kinds.len()).map(|kind| (kind, self.reserve(kind, BATCH)));
        let reserved: Vec<_> = reserved.filter(|(_, room)| room.size > 0).collect();
        if reserved.is_empty() {
            return Ok(false);
        }
        let rooms = reserved.iter().map(|(kind, room)| (self.kinds[*kind].clone(), room.size));
        let rooms: Vec<_> = rooms.collect();
        match self.store.claim(me, self.window, &rooms).await {
            Ok(mut claimed) => {
                let full = |(kind, room): &(Arc<str>, usize)| {
                    claimed.iter().filter(|job| job.kind == *kind).count() == *room
                };
                let more = rooms.iter().any(full);
                claimed.sort_by_key(|job| job.due);
                self.hold(claimed);
                Ok(more)
            }
            Err(error) => {
                if !error.is_undone() {
                    self.rejoin(); // the jobs may be claimed
                }
                Err(error)
            }
        }
    }

    fn take_notices(&self, noticed: &mut mpsc::UnboundedReceiver<Notice>, agenda: &mut Agenda) {
        while let Ok(notice) = noticed.try_recv() {
            self.take_notice(Some(notice), agenda);
        }
    }

    fn take_notice(&self, notice: Option<Notice>, agenda: &mut Agenda) {
        match notice {
            Some(Notice::Look | Notice::Listening) => agenda.claim = true,
            Some(Notice::Lost) => {}
            // The epoch says whether it is a claim of this node.
            Some(Notice::Drop(_, claim)) => self.drop_claim(claim),
            None => {}
        }
    }

    /// Gives back what has not begun, waits for what runs, and leaves.
    async fn wind_up(&self, limit: Duration) -> Result<Stopped, StopError> {
        let end = far_future(Instant::now(), limit);
        self.stopping.cancel();
        self.timer.stop_async().await;
        let given_back = self.drop_all_but(&[]);
        while self.held().len() > 0 {
            let settled = tokio::time::timeout_at(end.into(), self.settled.notified());
            if settled.await.is_err() {
                break;
            }
        }
        let still_running = self.held().running();
        let me = self.me.write().await.take();
        if let Some(me) = me {
            self.store.leave(me).await?;
        }
        Ok(Stopped { given_back, still_running })
    }
}
