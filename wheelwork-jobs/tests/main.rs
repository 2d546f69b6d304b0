//! The tests of the library, in one program: they mostly wait, so they wait beside each other.

mod common;
mod crash;
mod dashboard;
mod faults;
mod promises;
