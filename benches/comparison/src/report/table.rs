//! The table in Markdown.

use super::plots::Drawn;
use super::remarks;
use super::results::Results;
use super::verdict::Verdict;
use super::words::{self, number};
use crate::catalogue::{Plot, WORKLOADS, Workload};
use crate::param;
use crate::rivals::{self, OURS};

pub fn markdown(results: &Results, verdicts: &[Verdict], plots: &[Drawn]) -> String {
    let mut text = String::from("# Wheelwork beside other timers\n\n## The numbers to reach\n\n");
    let goals = verdicts.iter().map(|goal| {
        let judgement = format!("**{}**", goal.judgement);
        vec![
            goal.claim.clone(),
            goal.target.clone(),
            goal.measured.clone(),
            judgement,
            goal.parts.clone(),
        ]
    });
    text += &table(&["", "to reach", "measured", "", "from"].map(str::to_owned), goals);
    text += "\nFigures below are medians over the rounds, with the least and the greatest, and the \
             ratio to wheelwork's: above 1x is dearer than wheelwork. The machine is described in \
             [machine.md](machine.md), the workloads in \
             [the harness](../comparison/README.md).\n\n## The timers\n\n";
    let timers = rivals::all().map(|facts| vec![facts.name.to_owned(), facts.lacks.to_owned()]);
    text += &table(&["timer", "what it does not do, or does otherwise"].map(str::to_owned), timers);
    let measured = |work: &&Workload| !results.params(work.name).is_empty();
    text.extend(WORKLOADS.iter().filter(measured).map(|work| section(results, work)));
    text += "\n## Plots\n";
    text.extend(plots.iter().map(|plot| format!("\n![{}]({})\n", plot.title, plot.file)));
    text
}

/// Tables with a column for each param of a metric, or for each metric of a param.
fn section(results: &Results, work: &Workload) -> String {
    let mut text = format!("\n## {}\n\n{}\n", work.title, work.about);
    let params = results.params(work.name);
    let metrics = results.metrics(work.name);
    // The percentiles of one run belong side by side.
    if params.len() > 1 && !matches!(work.plot, Some(Plot::Ranges(_))) {
        for metric in metrics {
            let column = |param: &&str| (param.to_string(), metric, param::in_words(param));
            let columns: Vec<_> = params.iter().map(column).collect();
            text += &comparison(results, work.name, &words::metric(metric), &columns);
        }
    } else {
        for param in params.iter().filter(|param| !param::is_control(param)) {
            let control = param::control_of(param).map(|control| (control, "control: "));
            let runs = [(param.to_string(), "")].into_iter().chain(control);
            let columns: Vec<_> = runs
                .flat_map(|(param, prefix)| {
                    let name = move |metric| format!("{prefix}{}", words::metric(metric));
                    metrics.iter().map(move |metric| (param.clone(), *metric, name(metric)))
                })
                .collect();
            text += &comparison(results, work.name, &param::in_words(param), &columns);
        }
    }
    text + &remarks::in_full(results, work.name)
}

/// A param, a metric, and what the two are called in the head.
type Column<'a> = (String, &'a str, String);

/// Rows of rivals, the cheapest in the first column first.
fn comparison(results: &Results, work: &str, caption: &str, columns: &[Column<'_>]) -> String {
    let mut header = vec!["timer".to_owned()];
    header.extend(columns.iter().map(|(.., name)| name.clone()));
    let mut rivals = results.rivals(work);
    let rank = |rival: &str| {
        let median = |(param, metric, _): &Column<'_>| results.median(work, param, metric, rival);
        columns.iter().find_map(median).unwrap_or(f64::INFINITY)
    };
    rivals.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let rows = rivals.into_iter().map(|rival| {
        let cells =
            columns.iter().map(|(param, metric, _)| cell(results, work, param, metric, rival));
        let name = if rival == OURS { format!("**{rival}**") } else { rival.to_owned() };
        [name].into_iter().chain(cells).collect()
    });
    let mut letters = caption.chars();
    let first = letters.next().filter(|first| *first != '-').map(|c| c.to_uppercase().to_string());
    let caption = first.map_or(String::new(), |first| format!("\n{first}{}\n", letters.as_str()));
    format!("{caption}\n{}", table(&header, rows))
}

/// `**42.1** (40.0 to 55.2) 1.8x`, or why there is none.
fn cell(results: &Results, work: &str, param: &str, metric: &str, rival: &str) -> String {
    let remarks = remarks::brief(results, work, param, rival);
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

fn table(header: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    line(header) + &rule + &rows.map(|row| line(&row)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::verdict;
    use super::*;

    #[test]
    fn the_table_has_goals_figures_controls_and_failures() {
        let results = Results::fixture();
        let text = markdown(&results, &verdict::all(&results), &[]);
        for expected in [
            "| at least 2x | 3.00x | **reached** |",
            "| netty-best | **63** (60 to 66) 3.0x | **60** 2.0x |\n",
            "| **wheelwork** | **21** (20 to 22) | **30** |\n",
            "| tokio-sleep | **85** (80 to 90) 4.0x | crashed |\n",
            "429x † |",
            "\n† sorted-list, 1 producer, no captures: with 20k timeouts only\n",
            "| p50, ms | p99, ms | max, ms | control: p50, ms | control: p99, ms |",
            "| **wheelwork** | **2** | **40** | **50** |  | **5** |",
            "| netty-best | **2,400** |\n",
            "\n16 threads, reschedule\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }
}
