//! Apart, for the fuzz target has no use for the rest.

use wheelwork::WheelKind;

pub const WHEELS: [WheelKind; 3] =
    [WheelKind::Hashed, WheelKind::Hierarchical, WheelKind::LinuxClassic];
