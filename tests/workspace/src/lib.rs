//! The end of `cargo test --workspace`: Cargo tests documentation last, by the names of the packages. So what this
//! machine lacks stands in the last lines, among the ignored tests.

/// The test programs of wheelwork-jobs that start a PostgreSQL server. Without one, their tests on PostgreSQL pass and
/// do nothing.
#[cfg(no_postgresql)]
pub mod left_out_for_want_of_postgresql {
    macro_rules! programs {
        ($($program:ident)*) => { $(
            /// ```ignore
            /// apt-get install postgresql
            /// ```
            pub fn $program() {}
        )* };
    }
    programs!(crash example faults oracle promises telemetry tool);
}

/// The programs of the guide that need the companion crates.
#[cfg(doctest)]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/programs.md"))]
struct Programs;

#[cfg(test)]
mod tests {
    /// The names that a manifest defines as features.
    fn features(manifest: &str) -> impl Iterator<Item = &str> {
        let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
        lines
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name.trim())
            .filter(|name| *name != "default" && !name.starts_with(['#', '"']))
    }

    #[test]
    fn the_workspace_is_tested_with_every_feature() {
        let here = include_str!("../Cargo.toml");
        let crates = [
            include_str!("../../../Cargo.toml"),
            include_str!("../../../wheelwork-http/Cargo.toml"),
            include_str!("../../../wheelwork-jobs/Cargo.toml"),
        ];
        for name in crates.into_iter().flat_map(features) {
            assert!(here.contains(&format!("\"{name}\"")), "{name} is not among the features here");
        }
    }
}
