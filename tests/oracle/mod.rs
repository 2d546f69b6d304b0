//! An oracle for the timer: a random history is played on a real timer with a manual clock, and what
//! was seen there is checked against a plain sorted map.
//!
//! `history` decodes the operations from bytes, so that random tests and fuzzing share all of this.
//! `play` plays them on a timer, with the tasks and the executor in `tasks`, and records what happens
//! in `world`. `model` is the simplest timer that keeps the promises, and `check` compares the two. The random
//! tests are in `tests`.
// The test and the fuzz target compile this for themselves, and each uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod check;
pub mod history;
pub mod model;
pub mod play;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod world;

pub use history::History;

/// Plays the history. An error says what differs from the model.
pub fn difference(history: &History) -> Result<(), String> {
    let seen = play::play(history);
    check::check(history, &seen).map_err(|difference| {
        let seen: String = seen.iter().map(|event| format!("    {event:?}\n")).collect();
        format!("{difference}\n\nwhat was seen:\n{seen}")
    })
}

/// Panics if the history differs from the model.
pub fn agree(history: &History) {
    if let Err(difference) = difference(history) {
        panic!("{difference}\n{history:?}");
    }
}
