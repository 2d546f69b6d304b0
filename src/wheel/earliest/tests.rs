use super::*;

#[test]
fn rule_08_the_least_agrees_with_a_plain_search() {
    for buckets in [1usize, 2, 3, 20, 64] {
        let mut tree = Earliest::new(buckets).unwrap();
        let mut plain = vec![NOTHING; buckets];
        let mut x = 1u64;
        for step in 0..2000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (bucket, tick) = ((x >> 33) as usize % buckets, (x >> 20) % 1000);
            if step % 3 == 0 {
                let tick = if x % 5 == 0 { NOTHING } else { tick };
                tree.set(bucket, tick);
                plain[bucket] = tick;
            } else {
                tree.lower(bucket, tick);
                plain[bucket] = plain[bucket].min(tick);
            }
            assert_eq!(Some(&tree.least()), plain.iter().min());
            assert_eq!(tree.nodes[tree.nodes.len() / 2 + bucket], plain[bucket]);
        }
    }
}
