use super::*;
use crate::intake::test_producer::{DUE, Place, Producer, end_elsewhere};
use crate::intake::{Claim, Moved, Phase, SLOTS};

/// The worker: the chunks that it knows, and the tokens of its wheel, each with the time of its look.
struct Worker {
    chunks: Chunks<u32>,
    filed: Vec<(u64, Token)>,
}

impl Worker {
    fn of(producer: &mut Producer) -> Self {
        let table = producer.table.take().expect("a timer has one worker");
        Self { chunks: Chunks::new(table), filed: Vec::new() }
    }

    fn take_in(&mut self, producer: &Producer) -> usize {
        let before = self.filed.len();
        self.chunks.take_in(&producer.shared, |by, token| self.filed.push((by, token)));
        self.filed.len() - before
    }

    /// Looks at all chunks that are due at time `by`. Returns the deadlines of the New timeouts that are
    /// due too, and files the chunks for the others.
    fn look(&mut self, by: u64) -> Vec<u64> {
        let mut due = Vec::new();
        let (now, later): (Vec<_>, Vec<_>) = self.filed.drain(..).partition(|&(at, _)| at <= by);
        self.filed = later;
        for (_, token) in now {
            let mut left = NEVER;
            let looked = self.chunks.look(token, |_, _, slot, deadline| {
                match deadline <= by && slot.file().is_some() {
                    true => due.push(deadline),
                    false => left = left.min(deadline),
                }
            });
            let token = looked.and_then(|id| self.chunks.promise_look(id, left));
            self.filed.extend(token.map(|token| (left, token)));
        }
        due
    }

    /// Ends the thread and its timeouts, and drops its chunk.
    fn end_all(&mut self, mut producer: Producer) {
        producer.end_all();
        let Producer { shared, owner, .. } = producer;
        let pool = owner.pool_in(&shared);
        drop(owner);
        assert_eq!(self.chunks.release(pool, 9).map(|released| released.len()), Some(1));
    }

    /// The earliest time of a live token.
    fn next(&self) -> u64 {
        let live = self.filed.iter().filter_map(|&(_, token)| self.chunks.standing(token));
        live.min().unwrap_or(NEVER)
    }
}

#[test]
fn rule_02_a_look_is_promised_by_the_earliest_deadline() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let places: Vec<Place> = [480, 400, 640].map(|deadline| producer.arm_at(deadline)).into();
    assert_eq!((worker.take_in(&producer), worker.next()), (1, 400), "one entry for all");
    let (chunk, offset) = &places[2];
    assert_eq!(chunk.slot(*offset).reschedule(320), Ok(Moved::Sooner));
    chunk.announce_moved(320);
    chunk.announce_moved(320);
    assert_eq!((worker.take_in(&producer), worker.next()), (1, 320), "one of the two suffices");
    assert_eq!((worker.look(320), worker.next()), (vec![320], 400));
    assert_eq!((worker.look(399), worker.look(400)), (vec![], vec![400]));
    assert_eq!((worker.look(NEVER - 1), worker.next()), (vec![480], NEVER));
}

/// Whatever the order of the deadlines, a chunk has one entry until the worker takes it in.
#[test]
fn an_owner_announces_only_what_is_sooner() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    for round in 1..4 {
        (0..SLOTS as u64).for_each(|n| _ = producer.arm_at(1000 * round + 8 * n));
        assert_eq!(worker.take_in(&producer), 1, "round {round}");
        assert_eq!(worker.look(1000 * round + 8 * SLOTS as u64).len(), SLOTS);
    }
    for falls in 0..2 {
        (0..5).for_each(|n| _ = producer.arm_at(DUE - 8 * (5 * falls + n)));
        producer.owner.chunk.announce_moved(DUE - 8 * (5 * falls + 5));
        assert_eq!((worker.take_in(&producer), worker.next()), (1, DUE - 8 * (5 * falls + 5)));
    }
}

/// Before the worker takes it in, a chunk has one entry, however often its timeouts are pulled forward.
#[test]
fn rule_04_timeouts_that_are_pulled_forward_share_an_entry() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let places = producer.arm(3 * SLOTS);
    assert_eq!((worker.take_in(&producer), worker.next()), (3, DUE));
    for round in 1..4 {
        for n in 1..100 {
            let sooner = DUE - 8 * (100 * round + n);
            for (chunk, offset) in &places {
                assert_eq!(chunk.slot(*offset).reschedule(sooner), Ok(Moved::Sooner));
                chunk.announce_moved(sooner);
            }
        }
        let next = DUE - 8 * (100 * round + 99);
        assert_eq!((worker.take_in(&producer), worker.next()), (3, next));
    }
}

/// After a look, the owner announces only what is before the next one.
#[test]
fn an_owner_relies_on_the_promise_of_the_last_look() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    producer.arm_at(400);
    producer.arm_at(800);
    assert_eq!((worker.take_in(&producer), worker.look(400), worker.next()), (1, vec![400], 800));
    producer.arm_at(800);
    assert_eq!(worker.take_in(&producer), 0);
    producer.arm_at(792);
    assert_eq!((worker.take_in(&producer), worker.next()), (1, 792));
}

/// The next owner of a chunk relies on what the last one has announced.
#[test]
fn rule_02_a_promise_outlives_the_owner() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let places = producer.arm(2 * SLOTS);
    places[..SLOTS].iter().for_each(end_elsewhere);
    assert_eq!(worker.take_in(&producer), 2);
    let again = producer.arm(SLOTS);
    assert!(again.iter().all(|(chunk, _)| chunk.id == places[0].0.id));
    assert_eq!((worker.take_in(&producer), worker.look(DUE).len()), (0, 2 * SLOTS));
}

/// A timeout that goes on after a run is announced by its runner.
#[test]
fn rule_01_a_slot_that_went_on_is_found() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let (chunk, offset) = producer.arm_at(400);
    worker.take_in(&producer);
    assert_eq!(worker.look(400), [400]);
    let slot = chunk.slot(offset);
    let Claim::Due((_, mut runner)) = chunk.claim(offset, slot.version(), 400) else {
        panic!("it is due");
    };
    assert!(runner.go_on(7, 800, Phase::New).is_ok());
    drop(runner);
    chunk.announce_moved(800);
    assert_eq!((worker.take_in(&producer), worker.look(800)), (1, vec![800]));
}

/// A look that was promised for a cancelled timeout, or for one that was pushed back, is put off.
#[test]
fn rule_06_a_confirmed_look_has_a_timeout() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let places: Vec<Place> = [400, 480, 560].map(|deadline| producer.arm_at(deadline)).into();
    worker.take_in(&producer);
    let token = worker.filed[0].1;
    assert_eq!(worker.chunks.confirm(token), Some(400));
    producer.end(&places[0]);
    let (chunk, offset) = &places[1];
    assert_eq!(chunk.slot(*offset).reschedule(800), Ok(Moved::Deadline));
    assert_eq!(
        (worker.chunks.confirm(token), worker.chunks.standing(token)),
        (Some(560), Some(560))
    );
    producer.end(&places[1]);
    producer.end(&places[2]);
    assert_eq!((worker.chunks.confirm(token), worker.chunks.standing(token)), (None, None));
    assert_eq!(worker.chunks.live(), 0);
    producer.arm_at(560);
    assert_eq!((worker.take_in(&producer), worker.next()), (1, 560), "nothing was promised");
}

#[test]
fn a_chunk_has_one_live_token() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    for deadline in [800, 480, 400] {
        producer.arm_at(deadline);
        worker.take_in(&producer);
    }
    let live = worker.filed.iter().filter(|(_, token)| worker.chunks.standing(*token).is_some());
    assert_eq!(live.map(|&(by, _)| by).collect::<Vec<_>>(), [400]);
    assert_eq!(worker.chunks.live(), 1);
    assert_eq!((worker.look(400), worker.chunks.live()), (vec![400], 1));
    assert_eq!((worker.look(800), worker.chunks.live()), (vec![800, 480], 0));
    producer.arm_at(880);
    assert_eq!((worker.take_in(&producer), worker.chunks.live()), (1, 1));
    worker.end_all(producer);
    assert_eq!((worker.next(), worker.chunks.live()), (NEVER, 0));
}

/// An entry may name a chunk that was dropped, or a later chunk of the same number.
#[test]
fn a_dropped_chunk_is_not_looked_at() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    producer.arm(1);
    worker.take_in(&producer);
    producer.arm_at(8);
    let shared = producer.shared.clone();
    worker.end_all(producer);
    worker.chunks.take_in(&shared, |_, _| panic!("the chunk was dropped"));
    for index in [0, 64, u32::MAX] {
        let token = Token { index, version: 0 };
        assert_eq!((worker.chunks.standing(token), worker.chunks.confirm(token)), (None, None));
        assert_eq!(worker.chunks.order(token), None);
    }
}

#[test]
fn a_token_has_the_order_of_its_own_timeout_only() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    let places = producer.arm(3);
    worker.take_in(&producer);
    let token = |(chunk, offset): &Place| chunk.token(*offset, chunk.slot(*offset).version());
    let orders = places.iter().map(|place| worker.chunks.order(token(place)).expect("live"));
    assert!(orders.collect::<Vec<_>>().is_sorted());
    let old = token(&places[0]);
    producer.end(&places[0]);
    let again = producer.arm(1).remove(0);
    assert_eq!(token(&again).index, old.index);
    assert_eq!(worker.chunks.order(old), None);
}

/// The look that confirms a token may find a timeout whose entry is still in the queue.
#[test]
fn rule_02_a_confirmed_look_does_not_hide_a_sooner_one() {
    let mut producer = Producer::new();
    let mut worker = Worker::of(&mut producer);
    producer.arm_at(800);
    worker.take_in(&producer);
    producer.arm_at(400);
    assert_eq!(worker.chunks.confirm(worker.filed[0].1), Some(800));
    assert_eq!((worker.take_in(&producer), worker.next()), (1, 400));
}
