use super::*;

fn pool_of(chunks: u32) -> Pool<u32> {
    let pool = Pool::new();
    (0..chunks).for_each(|chunk| pool.push(Arc::new(chunk)));
    pool
}

/// A pool with an owner keeps vacant chunks for the next burst, and a large one has more of them before a release.
#[test]
fn rule_04_vacant_chunks_beyond_those_that_a_pool_keeps_are_too_many() {
    let pool = pool_of(40);
    for vacant in 0..40 {
        let judged = || (pool.has_too_many(), pool.is_release_worth_it());
        assert_eq!(judged(), (vacant > 0, vacant > 0), "{vacant} vacant, without an owner");
        pool.add_owner();
        let expected = (vacant > VACANT_KEPT, vacant > VACANT_KEPT + 10);
        assert_eq!(judged(), expected, "{vacant} vacant, with an owner");
        pool.remove_owner();
        pool.count_vacant();
    }
}

/// The next owner, or the worker, may have popped the chunk before it is counted.
#[test]
fn a_chunk_that_is_uncounted_first_is_not_counted() {
    let pool = pool_of(0);
    pool.uncount_vacant();
    assert!(!pool.has_too_many());
    pool.count_vacant();
    assert!(!pool.has_too_many());
    pool.count_vacant();
    assert!(pool.has_too_many());
    pool.uncount_vacant();
    assert!(!pool.has_too_many());
}
