//! Leaves out the steps of a history that do not matter.

use super::history::Step;
use super::oracle::Violation;
use super::play::play;

/// Returns a shorter history that breaks the same rule, and how.
pub(super) fn shrink(
    seed: u64,
    mut steps: Vec<Step>,
    mut violation: Violation,
) -> (Vec<Step>, Violation) {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut begin = 0;
        while begin < steps.len() {
            let end = (begin + size).min(steps.len());
            let fewer = [&steps[..begin], &steps[end..]].concat();
            match play(seed, &fewer) {
                Err(same) if same.rule == violation.rule => (steps, violation) = (fewer, same),
                _ => begin += size,
            }
        }
        size /= 2;
    }
    (steps, violation)
}
