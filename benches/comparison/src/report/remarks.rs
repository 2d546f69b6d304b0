//! Why a figure is missing, or is not of what it seems to be.

use super::results::{REMARKS, Results};
use crate::param::{self, count_in_words};
use crate::plan;
use crate::rivals;

/// In a cell.
pub fn brief(results: &Results, workload: &str, param: &str, rival: &str) -> String {
    let known = |remark: &&str| results.median(workload, param, remark, rival).is_some();
    let remarks: Vec<_> = REMARKS.into_iter().filter(known).collect();
    remarks.join(", ").replace('_', " ")
}

/// Below the table, with the params that each concerns.
pub fn in_full(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    for rival in results.rivals(workload) {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for param in results.params(workload) {
            for remark in REMARKS {
                let Some(value) = results.median(workload, param, remark, rival) else { continue };
                let sentence = sentence(workload, param, rival, (remark, value));
                match found.iter_mut().find(|(known, _)| *known == sentence) {
                    Some((_, params)) => params.push(param::in_words(param)),
                    None => found.push((sentence, vec![param::in_words(param)])),
                }
            }
        }
        for (sentence, params) in found {
            text += &format!("\n† {rival}, {}: {sentence}\n", params.join("; "));
        }
    }
    text
}

fn sentence(workload: &str, param: &str, rival: &str, (remark, value): (&str, f64)) -> String {
    match remark {
        "crashed" if value < 0.0 => format!("crashed, by signal {}", -value),
        "crashed" => format!("crashed, with code {value}"),
        "timed_out" => format!("given up after {value} s"),
        "capped_at" => format!("with {} timeouts only", count_in_words(value as u64)),
        _ => format!("skipped: {}", why_skipped(workload, param, rival)),
    }
}

fn why_skipped(workload: &str, param: &str, rival: &str) -> String {
    let facts = rivals::facts(rival);
    let reason = facts.and_then(|facts| plan::skip_reason(workload, param, facts));
    let needs = facts.map_or("more than there was", |facts| facts.needs);
    reason.map_or_else(|| format!("it needs {needs}, and was not run here"), str::to_owned)
}
