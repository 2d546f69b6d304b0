use super::*;
use crate::wheel::Hashed;

fn token(index: u32) -> Token {
    Token { index, version: 0 }
}

fn filled(ticks: &[u64]) -> Hashed {
    let mut wheel = Hashed::new(8).unwrap();
    ticks.iter().for_each(|&tick| wheel.insert(tick, token(tick as u32 * 10)));
    wheel
}

/// They come after the wheel's own tokens of that tick.
#[test]
fn rule_07_pushed_tokens_of_one_tick_keep_their_order() {
    let (mut wheel, mut agenda) = (filled(&[4, 4, 6]), Agenda::default());
    for index in [3, 1, 2] {
        agenda.push(4, token(index));
    }
    let popped = std::iter::from_fn(|| agenda.pop(&mut wheel, 100));
    let order: Vec<_> = popped.map(|due| (due.tick, due.token.index)).collect();
    assert_eq!(order, [(4, 40), (4, 40), (4, 3), (4, 1), (4, 2), (6, 60)]);
}

/// The timeouts of ticks 1 and 2 were pushed back, to ticks 9 and 4.
fn order(wheel: &mut Hashed, now: u64) -> Vec<(u64, u32)> {
    let mut agenda = Agenda::default();
    let mut order = Vec::new();
    while let Some(Due { tick, token }) = agenda.pop(wheel, now) {
        match token.index {
            10 if tick == 1 => agenda.push(9, token),
            20 if tick == 2 => agenda.push(4, token),
            index => order.push((tick, index)),
        }
    }
    order
}

#[test]
fn rule_07_pushed_tokens_come_in_the_order_of_ticks() {
    let expected = [(3, 30), (4, 20), (5, 50), (9, 10)];
    assert_eq!(order(&mut filled(&[1, 2, 3, 5]), 7), expected);
    assert_eq!(order(&mut filled(&[1, 2, 3, 5]), 100), expected, "after a stall");
    // Tick 10 shares the bucket of tick 2, so that bucket is not taken as a whole.
    let mut wheel = filled(&[1, 2, 3, 5, 10]);
    assert_eq!(order(&mut wheel, 7), expected);
    assert_eq!(order(&mut wheel, 10), [(10, 100)]);
}
