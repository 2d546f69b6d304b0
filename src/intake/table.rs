//! The table of a timer: all of its chunks, by number. It is generic over what it holds, `T`, which is a chunk.
//!
//! A thread that makes a chunk takes a low free number, and puts a counted reference into the *place* of that
//! number. It does so before it announces any of the chunk's slots, and without a lock. Only the worker takes chunks
//! out, through its `WorkerTable`: as it releases a chunk, and at its own end. A chunk that is put in later is dropped
//! with the table.
//!
//! | who | reads a place | because |
//! |---|---|---|
//! | the worker | without a lock | only it takes chunks out |
//! | any other thread | under the lock | the worker takes chunks out under the lock. While another thread has it, the worker tries again later, except at its end |
//!
//! Invariants:
//! 1. A place is null, or has a reference that `insert` has counted. Only `Removal::remove`, the drop of the
//!    `WorkerTable` and the drop of a block take it out. The first two have the lock.
//! 2. There is one `WorkerTable` for each table, so the borrow of it decides between a read by the worker and a removal.

use crate::base::growing::Growing;
use crate::base::sync::{Arc, AtomicPtr, Mutex, MutexGuard, Ordering};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The most chunks that one timer can have.
pub(crate) const MAX_CHUNKS: u32 = 1 << 26;

/// The number of places in one block. A model has few.
const BLOCK: u32 = if cfg!(loom) { 4 } else { u64::BITS };

/// See the head. The numbers are taken by the standard library's atomics in the loom models too: no race depends on
/// which number a chunk has.
pub(crate) struct Table<T> {
    blocks: Growing<OnceLock<Arc<Block<T>>>>,
    /// No block before this one has a free number, unless a thread that looks for one has passed the block just as the
    /// number was given back. It is found again once a number of that block, or of an earlier one, is given back.
    first: AtomicU32,
    lock: Mutex<()>,
}

struct Block<T> {
    /// One bit for each number that is in use.
    used: AtomicU64,
    places: [AtomicPtr<T>; BLOCK as usize],
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        let places = std::array::from_fn(|_| AtomicPtr::new(null_mut()));
        Self { used: AtomicU64::new(0), places }
    }
}

impl<T> Block<T> {
    #[inline]
    fn place(&self, id: u32) -> &AtomicPtr<T> {
        &self.places[(id % BLOCK) as usize]
    }

    /// Takes out a chunk, whose number may then be used again.
    fn take(&self, id: u32) -> Option<Arc<T>> {
        let chunk = NonNull::new(self.place(id).swap(null_mut(), Ordering::AcqRel))?;
        self.used.fetch_and(!(1 << (id % BLOCK)), Ordering::Release);
        // SAFETY: the reference that `insert` has counted; the swap takes it once (invariant 1).
        Some(unsafe { Arc::from_raw(chunk.as_ptr()) })
    }

    fn take_all(&self) -> impl Iterator<Item = Arc<T>> {
        (0..BLOCK).filter_map(|id| self.take(id))
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        self.take_all().for_each(drop);
    }
}

impl<T> Table<T> {
    fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        self.blocks.iter().filter_map(|(_, block)| Some(&**block.get()?))
    }
}

impl<T: Send + Sync> Table<T> {
    /// A table, and what its worker has.
    pub(super) fn new() -> (Arc<Self>, WorkerTable<T>) {
        let (blocks, first) = (Growing::new(), AtomicU32::new(0));
        let table = Arc::new(Self { blocks, first, lock: Mutex::new(()) });
        if cfg!(loom) {
            table.block(0); // loom does not see that the thread that makes a block makes it first
        }
        (table.clone(), WorkerTable { table, blocks: Vec::new() })
    }

    /// A number for a new chunk. `None` if all are in use.
    pub(super) fn take_number(&self) -> Option<u32> {
        let relaxed = Ordering::Relaxed;
        let mut block = self.first.load(relaxed);
        while block < MAX_CHUNKS / BLOCK {
            let used = &self.block(block).used;
            let one_more = |used: u64| (used.trailing_ones() < BLOCK).then(|| used | (used + 1));
            // Acquire: pairs with the release of `take`.
            if let Ok(before) = used.fetch_update(Ordering::Acquire, relaxed, one_more) {
                return Some(block * BLOCK + before.trailing_ones());
            }
            let _ = self.first.compare_exchange(block, block + 1, relaxed, relaxed);
            block += 1;
        }
        None
    }

    fn block(&self, block: u32) -> &Arc<Block<T>> {
        self.blocks.make(block as usize).get_or_init(Arc::default)
    }

    /// Puts a new chunk into the place of its number. A swap, because a store may come before a `take` that has not
    /// seen it, in the models' memory.
    pub(super) fn insert(&self, id: u32, chunk: Arc<T>) {
        let chunk = Arc::into_raw(chunk).cast_mut();
        self.block(id / BLOCK).place(id).swap(chunk, Ordering::AcqRel);
    }

    /// The number of chunks.
    pub(crate) fn len(&self) -> usize {
        let used = self.blocks().map(|block| block.used.load(Ordering::Relaxed).count_ones());
        used.sum::<u32>() as usize
    }

    /// Calls `visit` with each chunk, in the order of the numbers.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        let _lock = self.lock.lock();
        for place in self.blocks().flat_map(|block| &block.places) {
            // SAFETY: by invariant 1, a place has a counted reference until it is taken out. That takes the lock, which
            // this has, or the drop of a block, and the table keeps its blocks.
            if let Some(chunk) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                visit(chunk);
            }
        }
    }
}

/// The worker's access to the table. See the head.
pub(crate) struct WorkerTable<T> {
    table: Arc<Table<T>>,
    /// The first blocks of the table, so that a look-up is two reads.
    blocks: Vec<Arc<Block<T>>>,
}

impl<T: Send + Sync> WorkerTable<T> {
    /// Makes `get` find the chunk with this number, which is in use or was.
    pub(crate) fn know(&mut self, id: u32) {
        let block = id / BLOCK;
        while self.blocks.len() as u32 <= block {
            self.blocks.push(self.table.block(self.blocks.len() as u32).clone());
        }
    }

    /// The chunk with this number.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        let place = self.blocks.get((id / BLOCK) as usize)?.place(id);
        // SAFETY: by invariant 1, a place has a counted reference until it is taken out. That takes the only
        // `WorkerTable` mutably (invariant 2), or the drop of the block. This borrows both.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    }

    /// Takes chunks out. `None` while another thread reads the table.
    pub(crate) fn try_removal(&mut self) -> Option<Removal<'_, T>> {
        Some(Removal { table: &self.table, _lock: self.table.lock.try_lock()? })
    }
}

/// The worker's end takes all chunks out.
impl<T> Drop for WorkerTable<T> {
    fn drop(&mut self) {
        let lock = self.table.lock.lock();
        let taken: Vec<_> = self.table.blocks().flat_map(Block::take_all).collect();
        drop(lock);
        drop(taken);
    }
}

/// The right to take chunks out.
pub(crate) struct Removal<'a, T> {
    table: &'a Table<T>,
    _lock: MutexGuard<'a, ()>,
}

impl<T: Send + Sync> Removal<'_, T> {
    /// Takes out a chunk, whose number may then be used again.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Arc<T>> {
        let block = id / BLOCK;
        let chunk = self.table.block(block).take(id);
        self.table.first.fetch_min(block, Ordering::Relaxed);
        chunk
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<T> Table<T> {
    /// Uses up all numbers.
    pub(crate) fn use_up(&self) {
        self.first.store(u32::MAX, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
