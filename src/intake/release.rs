//! Release: how the worker drops empty chunks, a few in each pass, and who requests it.
//!
//! A few empty chunks stay with the arena of a thread, for its next burst. Once there are more, and a quarter
//! as many as the pool has, the thread that frees the last slot requests a release. To free a chunk takes about
//! a microsecond, and there may be a million of them, so a release goes step by step: it visits 256 chunks of
//! the pools in each pass of the worker.

use super::arena::Arena;
use super::chunk::Chunk;
use super::context::Context;
use super::pin::Payload;
use super::registry::Registry;
use crate::base::sync::{Arc, Ordering};

/// The number of chunks that one step visits. It takes some 0.2 ms if all of them are dropped.
pub(crate) const CHUNKS_PER_STEP: usize = 256;

/// The number of empty chunks that the arena of a thread keeps for the next burst.
pub(super) const EMPTY_KEPT: usize = if cfg!(loom) { 0 } else { 16 };

impl Context {
    /// Wakes the worker to drop empty chunks.
    pub(crate) fn request_release(&self) {
        // Release: a release that begins later finds what the caller has counted.
        if !self.release_requested.swap(true, Ordering::Release) {
            self.alarm.call();
        }
    }

    /// Requests a release of the worker itself, which is awake.
    pub(crate) fn plan_release(&self) {
        self.release_requested.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_release_requested(&self) -> bool {
        self.release_requested.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_release(&self) {
        // A swap, so that the worker reads the arenas after it.
        self.release_requested.swap(false, Ordering::Acquire);
    }
}

impl<P> Arena<P> {
    /// Whether the worker should `release` chunks.
    pub(super) fn has_chunks_to_release(&self) -> bool {
        self.empty_chunks() > self.kept()
    }

    /// Requests a release if it is worth its cost. A large pool may have more empty chunks.
    pub(super) fn consider_release(&self) {
        let kept = self.kept();
        if self.empty_chunks() > if kept > 0 { kept + self.pool.len() / 4 } else { 0 } {
            if let Some(context) = self.timer.context() {
                context.request_release();
            }
        }
    }

    /// The number of empty chunks that stay for the next burst of the arena's thread.
    fn kept(&self) -> usize {
        if self.is_owned() { EMPTY_KEPT } else { 0 }
    }

    /// Visits the next `visited` chunks of the pool. Takes out the empty ones, except for the few that stay. The
    /// caller frees them, while the list of chunks is not locked. Only the worker calls it. `None` if another
    /// thread uses the list: the worker tries again later.
    pub(super) fn release(&self, visited: usize) -> Option<Vec<Arc<Chunk<P>>>> {
        let mut chunks = self.chunks.try_lock()?;
        let mut released = Vec::new();
        for _ in 0..visited {
            let Some(chunk) = self.pool.pop() else { break };
            if chunk.is_empty() && self.has_chunks_to_release() {
                self.uncount_empty();
                chunks.remove(&chunk.id);
                released.push(chunk);
            } else {
                self.pool.push(chunk);
            }
        }
        Some(released)
    }
}

/// A release in progress.
pub(crate) struct Release<P> {
    /// The arenas that are left to visit. The last one is next.
    arenas: Vec<Arc<Arena<P>>>,
    /// How many chunks in the pool of the next arena are left to visit, once the visit has begun.
    left: Option<usize>,
    /// Whether all lists could be used so far, and nothing was dropped.
    done: bool,
}

/// What a step of a release says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is more to visit.
    More,
    /// The release has ended.
    Done,
    /// The release has ended, but there must be another one: a thread used a list meanwhile, or chunks were dropped,
    /// so that more may be empty soon.
    Again,
}

impl<P: Payload> Release<P> {
    /// `None` if another thread uses the list of arenas: the worker tries again later.
    pub(crate) fn begin(registry: &Registry<P>) -> Option<Self> {
        Some(Self { arenas: registry.try_arenas()?, left: None, done: true })
    }

    /// Visits the next few chunks. Drops the empty ones, except for the few that each arena keeps, and
    /// the arenas of ended threads that have no chunk. Passes the numbers of the dropped chunks to `released`.
    pub(crate) fn step(&mut self, registry: &Registry<P>, mut released: impl FnMut(u32)) -> Step {
        let mut budget = CHUNKS_PER_STEP;
        while let Some(arena) = self.arenas.last() {
            if arena.has_chunks_to_release() {
                let left = self.left.take().unwrap_or_else(|| arena.pool.len());
                let visited = left.min(budget);
                let empty = arena.release(visited);
                self.done &= empty.as_ref().is_some_and(Vec::is_empty);
                for chunk in empty.into_iter().flatten() {
                    released(chunk.id);
                    registry.recycle(chunk.id);
                }
                budget -= visited;
                if visited < left {
                    self.left = Some(left - visited);
                    return Step::More;
                }
            }
            self.left = None;
            self.done &= arena.retire().is_some();
            self.arenas.pop();
        }
        self.done &= registry.forget_retired();
        if self.done { Step::Done } else { Step::Again }
    }
}

#[cfg(test)]
impl<P: Payload> Registry<P> {
    /// A whole release. False if there must be another one.
    pub(super) fn release_all(&self, mut released: impl FnMut(u32)) -> bool {
        let Some(mut release) = Release::begin(self) else { return false };
        loop {
            match release.step(self, &mut released) {
                Step::More => {}
                step => return step == Step::Done,
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
