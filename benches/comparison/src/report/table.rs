//! The table in Markdown.

use super::results::{REMARKS, Results};
use super::verdict::Verdict;
use super::words::{self, number};
use crate::catalogue::{Plot, WORKLOADS, Workload};
use crate::param::{self, count_in_words};
use crate::plan;
use crate::rivals::{self, OURS};
use itertools::Itertools;

/// `plots` are the pictures: those at the beginning, and the others.
pub fn markdown(results: &Results, verdicts: &[Verdict], plots: [&str; 2]) -> String {
    let goals = verdicts.iter().map(|goal| {
        let judgement = format!("**{}**", goal.judgement);
        let measured = goal.measured.clone().unwrap_or("-".to_owned());
        vec![goal.claim.clone(), goal.target.clone(), measured, judgement, goal.parts.clone()]
    });
    let goals = table(&["", "to reach", "measured", "", "from"].map(str::to_owned), goals);
    let timers = rivals::all().map(|facts| vec![facts.name.clone(), facts.lacks.clone()]);
    let timers =
        table(&["timer", "what it does not do, or does otherwise"].map(str::to_owned), timers);
    let measured = WORKLOADS.iter().filter(|work| !results.params(&work.name).is_empty());
    let sections = measured.map(|work| section(results, work)).join("");
    let [first, others] = plots;
    format!(
        "# Wheelwork beside other timers\n\n\
         Figures are medians over the rounds, with the least and the greatest, and the \
         ratio to wheelwork's: above 1x is dearer than wheelwork. The machine is described in \
         [machine.md](machine.md), the workloads in [the harness](../comparison/README.md).\n\
         {first}{sections}\n## The timers\n\n{timers}\n## Other plots\n{others}\n\
         ## The numbers to reach\n\n{goals}"
    )
}

/// Tables with a column for each param of a metric, or for each metric of a param.
fn section(results: &Results, work: &Workload) -> String {
    let params = results.params(&work.name);
    let metrics = results.metrics(&work.name);
    let mut text = format!("\n## {}\n\n{}\n", work.title, work.about);
    // The percentiles of one run belong side by side.
    if params.len() > 1 && !matches!(work.plot(), Some(Plot::Late(_))) {
        for metric in metrics {
            let column = |param: &&str| (param.to_string(), metric, param::in_words(param));
            let columns = params.iter().map(column).collect_vec();
            text += &comparison(results, &work.name, &words::metric(metric), &columns);
        }
    } else {
        for param in params.iter().filter(|param| !param::is_control(param)) {
            let control = param::control_of(param).map(|control| (control, "control: "));
            let runs = [(param.to_string(), "")].into_iter().chain(control);
            let columns = runs.cartesian_product(&metrics).map(|((param, prefix), metric)| {
                (param, *metric, format!("{prefix}{}", words::metric(metric)))
            });
            let columns = columns.collect_vec();
            text += &comparison(results, &work.name, &param::in_words(param), &columns);
        }
    }
    text + &remarks_in_full(results, &work.name)
}

/// A param, a metric, and what the two are called in the head.
type Column<'a> = (String, &'a str, String);

/// Rows of rivals, the cheapest in the first column first.
fn comparison(results: &Results, work: &str, caption: &str, columns: &[Column<'_>]) -> String {
    let names = columns.iter().map(|(.., name)| name.clone());
    let header = ["timer".to_owned()].into_iter().chain(names).collect_vec();
    let rank = |rival: &str| {
        let median = |(param, metric, _): &Column<'_>| results.median(work, param, metric, rival);
        columns.iter().find_map(median).unwrap_or(f64::INFINITY)
    };
    let rivals = results.rivals(work).into_iter().sorted_by(|a, b| rank(a).total_cmp(&rank(b)));
    let rows = rivals.map(|rival| {
        let cell = |(param, metric, _): &Column<'_>| cell(results, work, param, metric, rival);
        let name = if rival == OURS { format!("**{rival}**") } else { rival.to_owned() };
        [name].into_iter().chain(columns.iter().map(cell)).collect()
    });
    let mut letters = caption.chars();
    let first = letters.next().filter(|first| *first != '-').map(|c| c.to_uppercase().to_string());
    let caption = first.map_or(String::new(), |first| format!("\n{first}{}\n", letters.as_str()));
    format!("{caption}\n{}", table(&header, rows))
}

/// `**42.1** (40.0 to 55.2) 1.8x`, or why there is none.
fn cell(results: &Results, work: &str, param: &str, metric: &str, rival: &str) -> String {
    let known = |remark: &&str| results.median(work, param, remark, rival).is_some();
    let remarks = REMARKS.into_iter().filter(known).join(", ").replace('_', " ");
    let Some(figure) = results.figure(work, param, metric, rival) else { return remarks };
    let mut text = format!("**{}**", number(figure.median));
    let [min, max] = [figure.min, figure.max].map(number);
    if min != max {
        text += &format!(" ({min} to {max})");
    }
    let ours = results.median(work, param, metric, OURS).filter(|_| rival != OURS);
    if let Some(ratio) = ours.and_then(|ours| words::ratio(metric, figure.median, ours)) {
        text += &format!(" {ratio}");
    }
    if remarks.is_empty() { text } else { text + " †" }
}

pub fn table(header: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    line(header) + &rule + &rows.map(|row| line(&row)).collect::<String>()
}

/// Why figures are missing, or are not of what they seem to be, with the params that it concerns.
fn remarks_in_full(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    for rival in results.rivals(workload) {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for (param, remark) in results.params(workload).into_iter().cartesian_product(REMARKS) {
            let Some(value) = results.median(workload, param, remark, rival) else { continue };
            let sentence = sentence(workload, param, rival, (remark, value));
            match found.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, params)) => params.push(param::in_words(param)),
                None => found.push((sentence, vec![param::in_words(param)])),
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
    let needs = facts.and_then(|facts| facts.needs.as_deref()).unwrap_or("more than there was");
    reason.map_or_else(|| format!("it needs {needs}, and was not run here"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_goals_figures_controls_and_failures() {
        let results = Results::fixture();
        let text = markdown(&results, &Verdict::all(&results), ["", ""]);
        for expected in [
            "| at least 2x | 3.00x | **reached** |",
            "| netty-best | **63** (60 to 66) 3.0x | **60** 2.0x |\n",
            "| tokio-sleep | **85** (80 to 90) 4.0x | crashed |\n",
            "\n† sorted-list, 1 producer, no captures: with 20k timeouts only\n",
            "| **wheelwork** | **2** | **40** | **50** |  | **5** |",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }
}
