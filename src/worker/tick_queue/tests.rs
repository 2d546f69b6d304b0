use super::*;

/// The sequence numbers wrap.
#[test]
fn rule_07_a_number_is_within_those_after_it() {
    for (sequence, last, expected) in
        [(7, 7, true), (6, 7, true), (8, 7, false), (u64::MAX, 3, true), (3, u64::MAX, false)]
    {
        assert_eq!(is_within(sequence, last), expected, "{sequence} and {last}");
    }
}

#[test]
fn rule_04_a_burst_leaves_little_memory_behind() {
    let mut queue = TickQueue::default();
    let token = Token { index: 0, version: 0 };
    for n in 0..100 * KEPT as u64 {
        queue.sources.add(n, token);
        queue.group.add(n, token);
    }
    queue.clear();
    for items in [&queue.sources, &queue.group] {
        assert!(items.is_done() && items.list.capacity() < 2 * KEPT);
    }
}
