//! The end of a node: because it is told to stop, or because a part of it has died.

use super::held::Held;
use super::{Node, lock};
use crate::error::StopError;
use crate::handler::text_of;
use crate::host::{self, JoinError, JoinHandle, JoinSet};
use crate::store::{Store, StoreError};
use crate::time::far_future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long the store has for the last call, beyond the limit of a stop.
const GRACE: Duration = Duration::from_millis(500);

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

/// The tasks of a node. None of them ends before the node stops.
#[derive(Default)]
pub(super) struct Parts(JoinSet<()>);

impl Parts {
    pub(super) fn start(&mut self, part: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(part);
    }

    /// A task of another runtime is a part as well.
    pub(super) fn watch(&mut self, part: JoinHandle<()>) {
        self.0.spawn(async {
            match part.await.map_err(JoinError::try_into_panic) {
                Ok(()) => {}
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                Err(Err(_)) => log::warn!("the runtime of the handlers has ended"),
            }
        });
    }

    /// Waits until a part has ended before its time. Returns why.
    async fn fault(&mut self) -> String {
        match self.0.join_next().await {
            Some(Err(error)) => fault_of(error),
            Some(Ok(())) | None => "a part of it has ended".to_owned(),
        }
    }
}

fn fault_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}", text_of(&*panic)),
        Err(error) => error.to_string(),
    }
}

impl<S: Store> Node<S> {
    /// Lives until it has stopped or died.
    pub(super) async fn live(self: Arc<Self>, stop: oneshot::Receiver<Stop>, parts: Parts) {
        let _ended = self.ended.clone().drop_guard();
        let life = self.runtime.spawn(self.clone().live_whole(stop, parts));
        if let Err(error) = life.await {
            self.died(fault_of(error));
            self.end_number();
            if let Some(me) = self.me() {
                let _ = self.store.leave(me).await; // otherwise its life lapses
            }
        }
    }

    /// Lives until a stop, until the other end of `stop` is gone, or until a part has died.
    async fn live_whole(self: Arc<Self>, mut stop: oneshot::Receiver<Stop>, mut parts: Parts) {
        let command = tokio::select! {
            biased;
            command = &mut stop => command.ok(),
            fault = parts.fault() => {
                self.died(fault);
                None
            }
        };
        let limit = command.as_ref().map_or(Duration::ZERO, |stop| stop.limit);
        let stopped = self.wind_up(limit, parts).await;
        if let Err(error) = &stopped {
            log::warn!("the claims were not given back: {error}");
        }
        if let Some(Stop { done, .. }) = command {
            let _ = done.send(stopped); // the caller may have given up
        }
    }

    /// Gives back what has not begun, waits for what runs, and leaves. Beats go on meanwhile.
    async fn wind_up(&self, limit: Duration, parts: Parts) -> Result<Stopped, StopError> {
        let end = far_future(host::now(), limit);
        self.stopping.cancel();
        let _ = self.timer.stop_async().await; // an error only in a forked child, which has no runtime
        let given_back = self.let_go_unstarted();
        self.wait_for_ends(end, Held::in_room).await;
        // What the store has not taken back by then is freed by the last call.
        self.wait_for_ends(end.min(far_future(host::now(), GRACE)), Held::len).await;
        let still_running = self.held().running();
        let end = end.max(host::now());
        // The lock is fair: without the first wait, it would come after one insertion, with others in the queue.
        let me = async {
            self.inserted.cancelled().await;
            self.me.write().await
        };
        let mut me = match host::timeout_at(far_future(end, GRACE / 2), me).await {
            Some(me) => me,
            None => {
                // A call has the number, and may wait for a transaction of a handler that goes on. In a store of one
                // process nobody else would free what the node owns.
                drop(parts);
                self.me.write().await
            }
        };
        if let Some(me) = me.take() {
            self.end_number();
            let left = host::timeout_at(far_future(end, GRACE), self.store.leave(me)).await;
            left.ok_or_else(|| StoreError::new("leave the nodes", "no answer in time"))??;
        }
        Ok(Stopped { given_back, still_running })
    }

    /// Waits until the store knows how these jobs have ended.
    async fn wait_for_ends(&self, limit: Instant, left: fn(&Held) -> usize) {
        while left(&self.held()) > 0 {
            if host::timeout_at(limit, self.settled.notified()).await.is_none() {
                return;
            }
        }
    }

    /// Notes why the node has died. The first cause counts.
    fn died(&self, fault: String) {
        // A logger that panics must not keep the jobs from others.
        let _ = std::panic::catch_unwind(|| log::error!("the node has died: {fault}"));
        lock(&self.fault).get_or_insert(fault);
        self.stopping.cancel();
    }
}
