use super::*;
#[test]
fn rule_10_limits_are_rounded_up_and_bounded() {
    assert_eq!(hundreds_of_nanos(Duration::from_nanos(1)), 1);
    assert_eq!(hundreds_of_nanos(Duration::from_nanos(100)), 1);
    assert_eq!(hundreds_of_nanos(Duration::from_nanos(101)), 2);
    assert_eq!(hundreds_of_nanos(Duration::MAX), i64::MAX);
    assert_eq!(millis_not_below(Duration::from_micros(1001)), 2);
    assert_eq!(millis_not_below(Duration::MAX), INFINITE - 1);
}
