use super::*;
use std::collections::HashSet;

#[test]
fn rule_04_the_lowest_number_that_was_given_back_is_used_first() {
    let (table, mut entries) = Table::<u32>::new();
    let numbers = || {
        let number = table.take_number().unwrap();
        table.insert(number, Arc::new(number));
        number
    };
    assert!((0..1000).all(|n| numbers() == n));
    let mut removal = entries.try_removal().expect("nobody reads it");
    [70, 700, 3].into_iter().for_each(|n| assert_eq!(removal.remove(n).as_deref(), Some(&n)));
    assert_eq!([numbers(), numbers(), numbers(), numbers()], [3, 70, 700, 1000]);
}

#[test]
fn threads_take_different_numbers_while_others_are_given_back() {
    let (table, entries) = Table::<u32>::new();
    let (table, entries) = (&table, &std::sync::Mutex::new(entries));
    let taken = std::thread::scope(|scope| {
        let take = |_: i32| {
            let keep = |n: u32| {
                let keeps = n % 3 > 0;
                if !keeps {
                    table.insert(n, Arc::new(n));
                    let mut entries = entries.lock().unwrap();
                    assert!(entries.try_removal().unwrap().remove(n).is_some());
                }
                keeps
            };
            (0..20_000).map(|_| table.take_number().unwrap()).filter(|&n| keep(n)).collect()
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || take(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<Vec<u32>>>()
    });
    let all: HashSet<u32> = taken.iter().flatten().copied().collect();
    assert_eq!(all.len(), taken.iter().map(Vec::len).sum::<usize>());
}

#[test]
fn no_number_is_above_the_limit() {
    let (table, mut entries) = Table::<u32>::new();
    table.first.store(MAX_CHUNKS / BLOCK - 1, Ordering::Relaxed);
    let last: Vec<u32> = std::iter::from_fn(|| table.take_number()).collect();
    assert!(last.into_iter().eq(MAX_CHUNKS - BLOCK..MAX_CHUNKS));
    table.insert(MAX_CHUNKS - 7, Arc::new(0));
    assert!(entries.try_removal().unwrap().remove(MAX_CHUNKS - 7).is_some());
    assert_eq!((table.take_number(), table.take_number()), (Some(MAX_CHUNKS - 7), None));
}

/// Otherwise each new chunk would take longer than the one before it.
#[test]
fn a_search_for_a_number_passes_over_full_blocks() {
    let (table, _entries) = Table::<u32>::new();
    assert!((0..10 * BLOCK).all(|n| table.take_number() == Some(n)));
    let first = || table.first.load(Ordering::Relaxed);
    assert_eq!((first(), table.take_number(), first()), (9, Some(10 * BLOCK), 10));
}

#[test]
fn rule_04_the_worker_knows_the_blocks_up_to_a_number_and_no_more() {
    let (_table, mut entries) = Table::<u32>::new();
    for (id, blocks) in [(0, 1), (BLOCK - 1, 1), (70 * BLOCK, 71), (BLOCK, 71)] {
        entries.know(id);
        assert_eq!(entries.blocks.len(), blocks, "number {id}");
    }
}

#[test]
fn a_chunk_is_found_by_its_number_until_it_is_taken_out() {
    let (table, mut entries) = Table::<u32>::new();
    assert!(entries.get(0).is_none());
    for n in 0..1000 {
        assert_eq!(table.take_number(), Some(n));
        entries.know(n);
        assert!(entries.get(n).is_none());
        table.insert(n, Arc::new(n + 7));
    }
    let all = |table: &Table<u32>| {
        let mut all = Vec::new();
        table.for_each(|n| all.push(*n));
        all
    };
    assert!((0..1000).all(|n| entries.get(n) == Some(&(n + 7))));
    assert!(all(&table).into_iter().eq(7..1007));
    let mut removal = entries.try_removal().expect("nobody reads it");
    assert_eq!(removal.remove(500).as_deref(), Some(&507));
    assert_eq!(removal.remove(500), None);
    drop(removal);
    assert!(entries.get(500).is_none() && entries.get(501).is_some());
    assert_eq!((all(&table).len(), table.len()), (999, 999));
}

/// A thread that reads the table may need the worker's processor.
#[test]
fn rule_09_the_worker_takes_nothing_out_while_another_thread_reads() {
    let (table, mut entries) = Table::<u32>::new();
    assert_eq!(table.take_number(), Some(0));
    table.insert(0, Arc::new(7));
    let mut tried = 0;
    table.for_each(|_| tried += usize::from(entries.try_removal().is_none()));
    assert_eq!(tried, 1);
    assert!(entries.try_removal().is_some());
}

#[test]
fn rule_04_the_end_of_the_worker_or_of_the_table_drops_what_is_there() {
    let (table, entries) = Table::<Arc<()>>::new();
    let held = Arc::new(());
    let insert = || {
        let id = table.take_number().expect("there is room");
        table.insert(id, Arc::new(held.clone()));
    };
    (0..100).for_each(|_| insert());
    assert_eq!(Arc::strong_count(&held), 101);
    drop(entries);
    assert_eq!(Arc::strong_count(&held), 1);
    (0..100).for_each(|_| insert());
    assert_eq!(Arc::strong_count(&held), 101);
    drop(table);
    assert_eq!(Arc::strong_count(&held), 1);
}
