//! The standard library's primitives with random short delays at the steps that decide a race: before and after
//! each read-modify-write, each push and each pop, and before each lock.
//!
//! A race that an interrupted thread loses needs the interruption within a few instructions, which almost never
//! happens by itself. The package `tests/whole` sets the cfg.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Returns at once, after a turn of other threads, after a few microseconds, or, rarely, after enough time for
/// another thread to do much.
pub(super) fn delay() {
    thread_local! {
        static RANDOM: Cell<u64> = const { Cell::new(0) };
    }
    let mut random = RANDOM.get();
    if random == 0 {
        random = RandomState::new().build_hasher().finish() | 1;
    }
    random ^= random << 13; // xorshift64
    random ^= random >> 7;
    random ^= random << 17;
    RANDOM.set(random);
    let micros = random >> 32;
    match random % 4096 {
        0 => std::thread::sleep(Duration::from_micros(micros % 2000)),
        1..32 => std::thread::sleep(Duration::from_micros(micros % 20)),
        32..128 => std::thread::yield_now(),
        _ => {}
    }
}

fn with_delays<R>(step: impl FnOnce() -> R) -> R {
    delay();
    let result = step();
    delay();
    result
}

pub(crate) mod atomic {
    use super::with_delays;
    pub(crate) use std::sync::atomic::{AtomicPtr, Ordering, fence};

    /// Atomics whose read-modify-writes are delayed. Loads and stores are not.
    macro_rules! atomics {
        ($($name:ident($value:ty) { $($method:ident)* })*) => { $(
            #[derive(Debug, Default)]
            pub(crate) struct $name(std::sync::atomic::$name);

            #[allow(dead_code)] // a type has the methods of its like
            impl $name {
                pub(crate) const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                $(pub(crate) fn $method(&self, value: $value, order: Ordering) -> $value {
                    with_delays(|| self.0.$method(value, order))
                })*

                pub(crate) fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    failed: Ordering,
                ) -> Result<$value, $value> {
                    with_delays(|| self.0.compare_exchange(from, to, done, failed))
                }

                pub(crate) fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    failed: Ordering,
                ) -> Result<$value, $value> {
                    with_delays(|| self.0.compare_exchange_weak(from, to, done, failed))
                }

                pub(crate) fn fetch_update(
                    &self,
                    done: Ordering,
                    failed: Ordering,
                    change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    with_delays(|| self.0.fetch_update(done, failed, change))
                }
            }

            impl std::ops::Deref for $name {
                type Target = std::sync::atomic::$name;

                fn deref(&self) -> &Self::Target {
                    &self.0
                }
            }
        )* };
    }

    atomics! {
        AtomicBool(bool) { swap fetch_and fetch_or }
        AtomicU8(u8) { swap fetch_and fetch_or fetch_add fetch_sub fetch_min fetch_max }
        AtomicU32(u32) { swap fetch_and fetch_or fetch_add fetch_sub fetch_min fetch_max }
        AtomicU64(u64) { swap fetch_and fetch_or fetch_add fetch_sub fetch_min fetch_max }
        AtomicUsize(usize) { swap fetch_and fetch_or fetch_add fetch_sub fetch_min fetch_max }
    }
}

/// Queues whose pushes and pops are delayed.
macro_rules! queues {
    ($($name:ident($($capacity:ident)?) -> $pushed:ty;)*) => { $(
        pub(crate) struct $name<T>(crossbeam_queue::$name<T>);

        impl<T> $name<T> {
            pub(crate) fn new($($capacity: usize)?) -> Self {
                Self(crossbeam_queue::$name::new($($capacity)?))
            }

            pub(crate) fn push(&self, value: T) -> $pushed {
                with_delays(|| self.0.push(value))
            }

            pub(crate) fn pop(&self) -> Option<T> {
                with_delays(|| self.0.pop())
            }
        }

        impl<T> std::ops::Deref for $name<T> {
            type Target = crossbeam_queue::$name<T>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    )* };
}

queues! {
    SegQueue() -> ();
    ArrayQueue(capacity) -> Result<(), T>;
}
