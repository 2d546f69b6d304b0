//! A file of its own, because the fuzz target uses nothing else of `common`.

use wheelwork::WheelKind;

pub const WHEELS: [WheelKind; 3] =
    [WheelKind::Hashed, WheelKind::Hierarchical, WheelKind::LinuxClassic];
