use super::*;
use std::collections::HashSet;

#[test]
fn rule_04_the_lowest_number_that_was_given_back_is_used_first() {
    let table = Table::<u32>::new();
    let numbers = || table.take_number().unwrap();
    assert!((0..1000).all(|n| numbers() == n));
    [70, 700, 3].into_iter().for_each(|n| table.give_back(n));
    assert_eq!([numbers(), numbers(), numbers(), numbers()], [3, 70, 700, 1000]);
}

#[test]
fn threads_take_different_numbers_while_others_are_given_back() {
    let table = &Table::<u32>::new();
    let taken = std::thread::scope(|scope| {
        let take = |_: i32| {
            let keep = |n: u32| {
                let keeps = n % 3 > 0;
                if !keeps {
                    table.give_back(n);
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
    let table = Table::<u32>::new();
    table.first.store(MAX_CHUNKS / BLOCK - 1, Ordering::Relaxed);
    let last: Vec<u32> = std::iter::from_fn(|| table.take_number()).collect();
    assert!(last.into_iter().eq(MAX_CHUNKS - BLOCK..MAX_CHUNKS));
    table.give_back(MAX_CHUNKS - 7);
    assert_eq!((table.take_number(), table.take_number()), (Some(MAX_CHUNKS - 7), None));
}
