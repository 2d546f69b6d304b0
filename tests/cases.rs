//! How many random cases a property test tries.

use proptest::prelude::ProptestConfig;

/// `PROPTEST_CASES`, or `usual`.
pub fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { usual };
    ProptestConfig { cases, failure_persistence: None, ..default }
}
