use super::*;
use crate::base::sync::{Arc, check, spawn, turn};

/// Another producer wakes the worker too, and may be interrupted at any point.
#[test]
fn rule_02_a_wake_up_relies_on_no_other_thread() {
    check(|| {
        let alarm = Arc::new(Alarm::new());
        alarm.arm(80);
        let other = {
            let alarm = alarm.clone();
            spawn(move || alarm.ring_for(40))
        };
        turn();
        fence(Ordering::SeqCst); // the one after the push of an entry
        alarm.ring_for(48);
        assert!(alarm.parker().is_called());
        other.join().unwrap();
    });
}
