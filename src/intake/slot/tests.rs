use super::*;

fn armed(deadline: u64) -> Slot<u32> {
    let slot = Slot::new();
    slot.arm(7, deadline, 3 << 16 | 9, Runs::Periodically);
    slot
}

#[test]
fn every_phase_round_trips_through_its_bits() {
    use Phase::{Cancelled, Denied, Expired, Filed, Free, New, Returned, Running};
    for phase in [Free, New, Filed, Running, Denied, Expired, Cancelled, Returned] {
        assert_eq!(State::new(phase, 80).phase(), phase);
        let ended = matches!(phase, Expired | Cancelled | Returned);
        assert_eq!((phase.has_ended(), phase.is_unused()), (ended, ended || phase == Free));
    }
}

#[test]
fn rule_02_a_deadline_is_rounded_up_unless_it_is_never() {
    let kept = |deadline| State::new(Phase::New, deadline).deadline();
    assert_eq!([0, 1, 8, 1_000_000].map(kept), [0, 8, 8, 1_000_000]);
    assert_eq!([NEVER, NEVER - 1, NEVER - 7].map(kept), [NEVER; 3]);
    assert_eq!(kept(NEVER - 16), NEVER - 15);
}

#[test]
fn a_slot_with_a_task_of_24_bytes_is_40_bytes() {
    assert_eq!(size_of::<Slot<[u64; 3]>>(), 40);
}

/// At most one old entry in 2,000 is taken for that of the slot's next timeout, whatever the rhythm.
#[test]
fn rule_04_versions_come_round_at_no_distance() {
    let rhythms = (1..4096)
        .chain((1..4096).map(|times| times << 16))
        .chain((1..4096).map(|times| (times * 62) << 10));
    for distance in rhythms {
        let version = |sequence: u64| version_of(sequence << SEQUENCE_SHIFT);
        let is_equal = |&number: &u64| version(number * 61) == version(number * 61 + distance);
        let equal = (0..10_000).filter(is_equal).count();
        assert!(equal <= 5, "{equal} of 10,000 versions are equal at the distance {distance}");
    }
}

#[test]
fn the_fields_of_the_tag_do_not_overlap() {
    let slot = armed(80);
    slot.pin();
    let sequence = (3 << 16 | 9) << SEQUENCE_SHIFT;
    assert_eq!((slot.sequence(), slot.repeats()), (sequence, true));
    assert_eq!(slot.if_new(), Some(80));
    assert!(matches!(slot.cancel(|_| ()), Cancel::Won(7)));
    assert!(!slot.unpin(2) && slot.repeats() && slot.sequence() == sequence);
    assert!(slot.unpin(1));
    assert_eq!(slot.phase(), Phase::Free);
}

#[test]
fn rule_04_a_slot_that_nearly_had_too_many_pins_is_free_after_the_last_one() {
    let slot = armed(80);
    (PINS_AT_FIRST..PINS - 1).for_each(|_| slot.pin());
    assert!(matches!(slot.cancel(|_| ()), Cancel::Won(_)));
    (2..PINS - 1).for_each(|_| assert!(!slot.unpin(1)));
    assert!(slot.unpin(2));
    assert_eq!(slot.phase(), Phase::Free);
}

/// Else the slot would be used again while some of its handles are alive.
#[test]
fn a_slot_that_had_too_many_pins_is_never_free() {
    let slot = armed(80);
    (PINS_AT_FIRST..PINS + 9).for_each(|_| slot.pin());
    assert!(matches!(slot.cancel(|_| ()), Cancel::Won(_)));
    (0..PINS + 9).for_each(|_| assert!(!slot.unpin(1)));
    assert_eq!(slot.phase(), Phase::Cancelled);
}

#[test]
fn pulling_forward_leaves_a_dead_entry() {
    let slot = armed(80);
    let (_, version) = slot.file().unwrap();
    for _ in 0..2 {
        assert_eq!(slot.reschedule(160), Ok(Moved::Deadline));
        assert_eq!(slot.standing(version), Some(160));
    }
    assert_eq!(slot.reschedule(40), Ok(Moved::LeftEntry));
    assert_eq!((slot.standing(version), slot.phase()), (None, Phase::New));
    assert_eq!(slot.reschedule(32), Ok(Moved::Sooner));
    assert!(matches!(slot.claim(version, 1 << 20), Claim::Dead));
    let (deadline, version) = slot.file().unwrap();
    assert_eq!(deadline, 32);
    assert!(matches!(slot.claim(version, 31), Claim::NotYet { deadline: 32, filed: true }));
    assert!(matches!(slot.claim(version, 32), Claim::Due(_)));
    assert_eq!(slot.reschedule(90), Err(Phase::Running));
}
