//! Why a figure is missing, or is not of what it seems to be.

use super::results::{Remark, Results, Setting};
use super::wording::{count_of, param};
use crate::case::Case;
use crate::plan;
use crate::rivals;
use crate::sizes::Sizes;

/// In a cell.
pub fn brief(remark: Remark) -> &'static str {
    match remark {
        Remark::Skipped => "skipped",
        Remark::Crashed { .. } => "crashed",
        Remark::TimedOut { .. } => "too slow",
        Remark::CappedAt { .. } => "capped",
    }
}

/// Below the table, with the params that each concerns.
pub fn in_full(results: &Results, workload: &str, rival: &str) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for of in results.params(workload) {
        let setting = Setting { workload, param: of };
        for remark in results.remarks(setting, rival) {
            let sentence = sentence(setting, rival, remark);
            match found.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, params)) => params.push(param(of)),
                None => found.push((sentence, vec![param(of)])),
            }
        }
    }
    let line = |(sentence, params): (String, Vec<String>)| match params.join("; ").as_str() {
        "-" => sentence,
        params => format!("{params}: {sentence}"),
    };
    found.into_iter().map(line).collect()
}

fn sentence(setting: Setting<'_>, rival: &str, remark: Remark) -> String {
    match remark {
        Remark::Skipped => format!("skipped: {}", why_skipped(setting, rival)),
        Remark::Crashed { code } if code < 0.0 => format!("crashed, by signal {}", -code),
        Remark::Crashed { code } => format!("crashed, with code {code}"),
        Remark::TimedOut { seconds } => format!("given up after {seconds} s"),
        Remark::CappedAt { timeouts } => {
            format!("with {} timeouts only", count_of(timeouts as u64))
        }
    }
}

fn why_skipped(setting: Setting<'_>, rival: &str) -> String {
    // As many producers as may have been there.
    const CORES: u64 = 1 << 16;
    let mut cases = [true, false].into_iter().flat_map(|quick| Case::all(&Sizes::of(quick), CORES));
    let case =
        cases.find(|case| case.workload() == setting.workload && case.param() == setting.param);
    let facts = rivals::facts(rival);
    let reason = case.zip(facts).and_then(|(case, facts)| plan::skip_reason(case, facts));
    // The plan knows nothing of what this machine lacks.
    let needs = facts.map(|facts| facts.needs).filter(|needs| !needs.is_empty());
    match (reason, needs) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(needs)) => format!("it needs {needs}, and was not run here"),
        (None, None) => "it could not be run here".to_owned(),
    }
}
