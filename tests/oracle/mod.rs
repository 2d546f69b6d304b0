//! An oracle for the timer: a random history is played on a real timer with a manual clock, and what
//! was seen there is checked against a plain sorted map.
//!
//! `history` says what can happen, `play` does it and notes what it sees, `model` says what must be
//! seen, and `check` compares. Everything is decoded from bytes, so that random tests and fuzzing
//! share all of it.
// The test and the fuzz target compile this for themselves, and each uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod check;
pub mod history;
pub mod model;
pub mod play;

pub use history::History;

/// Plays the history, and says what differs from what was to be seen.
pub fn difference(history: &History) -> Result<(), String> {
    let seen = play::play(history);
    check::check(history, &seen).map_err(|difference| {
        let seen: String = seen.iter().map(|event| format!("    {event:?}\n")).collect();
        format!("{difference}\n\nwhat was seen:\n{seen}")
    })
}

/// As `difference`, for a test of one history.
pub fn agree(history: &History) {
    if let Err(difference) = difference(history) {
        panic!("{difference}\n{history:?}");
    }
}
