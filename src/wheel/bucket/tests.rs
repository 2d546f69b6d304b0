use super::*;

fn filled() -> Bucket<u16> {
    let mut bucket = Bucket::default();
    (0..10_000).for_each(|index| bucket.push(Token { index, version: 0 }, 7));
    bucket
}

/// Whichever way a burst leaves the bucket.
#[test]
fn rule_04_an_empty_bucket_keeps_no_memory_and_the_spare_little() {
    type Way = fn(&mut Bucket<u16>, &mut Bucket<u16>);
    let ways: [Way; 5] = [
        |bucket, spare| {
            bucket.clear();
            bucket.leave(spare);
        },
        |bucket, spare| bucket.take_all(spare, |_, _| ()),
        |bucket, _| _ = bucket.retain_before(10_000, 10_000, |_| false),
        |bucket, _| {
            assert!(bucket.confirm(
                7,
                7,
                &mut Confirm::new(usize::MAX, (0, u64::MAX), |_| Standing::Dead)
            ));
        },
        |bucket, spare| bucket.take_rounds(spare, 7, (7, 7), &mut filled(), |_, _| ()),
    ];
    for empty in ways {
        let (mut bucket, mut spare) = (filled(), Bucket::default());
        empty(&mut bucket, &mut spare);
        assert_eq!((bucket.len(), bucket.entries.capacity()), (0, 0));
        assert!(spare.entries.capacity() <= SPARE);
    }
}

#[test]
fn rule_04_a_bucket_that_was_almost_emptied_keeps_little_memory() {
    let (mut bucket, mut spare) = (filled(), Bucket::default());
    bucket.file(&mut spare, Token { index: 0, version: 0 }, 8);
    bucket.take_rounds(&mut spare, 7, (7, 7), &mut filled(), |_, _| ());
    assert_eq!((bucket.len(), spare.entries.capacity()), (1, 0));
    assert!(bucket.entries.capacity() <= 4);
    bucket.retain_before(1, 1, |_| false);
    assert_eq!(bucket.entries.capacity(), 0);
}

/// As time goes from bucket to bucket.
#[test]
fn rule_04_the_next_bucket_takes_the_memory_of_the_last() {
    let (mut bucket, mut spare) = (filled(), Bucket::default());
    bucket.take_all(&mut spare, |_, _| ());
    let at = spare.entries.as_ptr();
    bucket.file(&mut spare, Token { index: 0, version: 0 }, 7);
    assert_eq!((bucket.entries.as_ptr(), bucket.len()), (at, 1));
    assert_eq!(spare.entries.capacity(), 0);
}

/// Entries that are pushed between two steps do not hide any that were there before.
#[test]
fn rule_04_a_sweep_in_steps_checks_every_entry() {
    let mut bucket = filled();
    let (mut end, mut met) = (bucket.len(), 0);
    while end > 0 {
        end = bucket.retain_before(end, 300, |token| {
            met += 1;
            token.index % 3 == 0
        });
        bucket.push(Token { index: 0, version: 1 }, 8);
    }
    assert_eq!(met, 10_000);
    let kept = bucket.entries.iter().filter(|entry| entry.version == 0);
    assert!(kept.map(|entry| entry.index).eq((0..10_000).step_by(3)), "in order");
}
