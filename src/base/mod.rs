//! The ground floor: what every layer may use, and what knows of none.

pub(crate) mod isolate;
pub(crate) mod logging;
pub(crate) mod parker;
pub(crate) mod slab;
pub(crate) mod spread;
pub(crate) mod sync;
