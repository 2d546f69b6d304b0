//! The pages. Each value of the store goes through `html`.

use super::html::{beginning, encode, escape, lines, text};
use crate::table::{self, exact, relative, short, state};
use http::StatusCode;
use std::fmt::Write;
use std::time::SystemTime;
use wheelwork_jobs::{Glance, JobId, KindStats, State, StoredJob};

/// So many jobs are on a page.
pub(super) const PAGE: usize = 50;

/// A status, a content type and a body.
pub(super) type Answer = (StatusCode, &'static str, String);

/// So many characters of an error or a kind are in a table.
const CELL: usize = 200;

/// So many of a key.
const KEY: usize = 80;

/// So many characters of a payload are shown.
const LONGEST_PAYLOAD: usize = 64 * 1024;

/// A `String` takes all that is written.
macro_rules! add {
    ($html:expr, $($part:tt)*) => { let _ = write!($html, $($part)*); };
}

/// The heading of a column, and the class of its cells.
type Column = (&'static str, &'static str);

const KINDS: [Column; 7] = [
    ("Kind", ""),
    ("Waiting", "n"),
    ("Overdue", "n"),
    ("Late by", "n"),
    ("Claimed", "n"),
    ("Dead", "n"),
    ("Next due", "when"),
];

/// A page of jobs that are in one state, of a kind or of all.
pub(super) struct JobsPage<'a> {
    pub(super) state: State,
    pub(super) kind: Option<&'a str>,
    /// One more than the page shows if there are more.
    pub(super) jobs: &'a [StoredJob],
    pub(super) skip: usize,
    /// Whether all boxes are ticked.
    pub(super) is_chosen: bool,
    pub(super) may_change: bool,
}

impl JobsPage<'_> {
    fn link(&self, skip: usize, more: &str) -> String {
        let path = match self.state {
            State::Dead => "/dead",
            State::Done => "/done",
            _ => "/kind",
        };
        let kind = self.kind.map_or(String::new(), |kind| format!("kind={}&", encode(kind)));
        escape(&format!("{path}?{kind}skip={skip}{more}"))
    }

    /// The links to the pages beside this one.
    fn links(&self) -> String {
        let mut html = String::from("<p>");
        if self.skip > 0 {
            let to = self.link(self.skip.saturating_sub(PAGE), "");
            add!(html, "<a href=\"{to}\" rel=\"prev\">← before</a> ");
        }
        if self.jobs.len() > PAGE {
            let to = self.link(self.skip + PAGE, "");
            add!(html, "<a href=\"{to}\" rel=\"next\">more →</a>");
        }
        html + "</p>\n"
    }

    /// A job, with a box if it can be changed.
    fn job(&self, id: JobId) -> String {
        let checked = if self.is_chosen { " checked" } else { "" };
        let tick = match self.may_change {
            true => format!(
                "<input type=\"checkbox\" name=\"id\" value=\"{id}\" aria-label=\"{id}\"{checked}> "
            ),
            false => String::new(),
        };
        format!("{tick}<a href=\"/job?id={id}\">{id}</a>")
    }
}

fn page(title: &str, head: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"color-scheme\" content=\"light dark\">\n{head}\
        <link rel=\"stylesheet\" href=\"/style.css\">\n<title>{title}</title>\n</head>\n<body>\n\
        <header><nav><a href=\"/\">Kinds</a> <a href=\"/dead\">Dead jobs</a> \
        <a href=\"/done\">Done</a></nav></header>\n\
        <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A table, whose rows are cards on a narrow screen. The first cell of a row is its heading.
fn table(columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<table class=\"cards\"><thead><tr>");
    for (name, class) in columns {
        add!(html, "<th class=\"{class}\">{name}");
    }
    html.push_str("</thead>\n<tbody>\n");
    for row in rows {
        for (place, (cell, (name, class))) in row.iter().zip(columns).enumerate() {
            if place == 0 {
                add!(html, "<tr><th scope=\"row\" class=\"{class}\">{cell}");
            } else {
                add!(html, "<td class=\"{class}\" data-label=\"{name}\">{cell}");
            }
        }
        html.push('\n');
    }
    html + "</tbody></table>\n"
}

/// The kinds and their counts.
pub(super) fn kinds(glance: &Glance, refresh: bool) -> String {
    let at = glance.at.unwrap_or_else(SystemTime::now);
    let mut body = String::from("<h1>Kinds of jobs</h1>\n");
    if glance.kinds.is_empty() {
        body.push_str("<p class=\"none\">There are no jobs.</p>\n");
    } else {
        body.push_str(&table(&KINDS, glance.kinds.iter().map(|kind| kind_row(kind, glance, at))));
    }
    body.push_str("<p class=\"note\">");
    if !glance.all_kinds {
        add!(body, "Only {} kinds of free jobs are shown. ", Glance::MOST_KINDS);
    }
    let again = match refresh {
        true => "Shown again every 10 s. <a href=\"/\">Stop</a>",
        false => "<a href=\"/?refresh\">Show again every 10 s</a>",
    };
    add!(body, "As of {}. A + means \"or more\". {again}</p>\n", exact(at));
    let head = if refresh { "<meta http-equiv=\"refresh\" content=\"10\">\n" } else { "" };
    page("Kinds of jobs", head, &body)
}

fn kind_row(kind: &KindStats, glance: &Glance, at: SystemTime) -> Vec<String> {
    let waiting = |n: u64| count(n, n < glance.most_waiting);
    let late = kind.next_due.and_then(|due| at.duration_since(due).ok());
    let late = late.filter(|late| kind.overdue > 0 || late.as_secs() > 0);
    let late = late.map_or("–".to_owned(), |late| short(late.as_secs()));
    let warn = |holds: bool, text: String| match holds {
        true => format!("<span class=\"warn\">{text}</span>"),
        false => text,
    };
    let name = encode(&kind.kind);
    let dead = count(kind.dead, glance.all_dead);
    let next = kind.next_due.map_or("–".to_owned(), |due| relative(due, at));
    vec![
        format!("<a href=\"/kind?kind={name}\">{}</a>", beginning(&kind.kind, CELL)),
        waiting(kind.waiting),
        warn(kind.overdue > 0, waiting(kind.overdue)),
        warn(kind.overdue > 0, late),
        count(kind.claimed, glance.all_claimed),
        match kind.dead {
            0 => dead,
            _ => format!("<span class=\"bad\"><a href=\"/dead?kind={name}\">{dead}</a></span>"),
        },
        warn(kind.paused, if kind.paused { "paused".to_owned() } else { next }),
    ]
}

/// Such as `12,345`, with a `+` if there may be more.
fn count(number: u64, is_all: bool) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    let more = if is_all { "" } else { "+" };
    groups.collect::<Vec<_>>().join(",") + more
}

/// Jobs with their errors, and a form to change them.
pub(super) fn jobs(of: &JobsPage<'_>) -> String {
    let (title, none, when) = match of.state {
        State::Dead => ("Dead jobs", "There are none here.", "Due"),
        State::Done => ("Done", "There are none here: few kinds keep their jobs.", "Done"),
        _ => ("Waiting jobs", "No jobs are waiting here.", "Due"),
    };
    let mut body = format!("<h1>{title}</h1>\n");
    if let Some(kind) = of.kind {
        let (kind, name) = (beginning(kind, CELL), encode(kind));
        body = format!(
            "<h1>{title}: {kind}</h1>\n<p>Of this kind: <a href=\"/kind?kind={name}\">waiting</a>, \
            <a href=\"/dead?kind={name}\">dead</a>, <a href=\"/done?kind={name}\">done</a></p>\n"
        );
    }
    if of.jobs.is_empty() {
        add!(body, "<p class=\"none\">{none}</p>\n{}", of.links());
        return page(title, "", &body);
    }
    if of.may_change {
        body.push_str("<form method=\"post\" autocomplete=\"off\">\n");
        if let Some(kind) = of.kind.map(escape) {
            add!(body, "<input type=\"hidden\" name=\"kind\" value=\"{kind}\">\n");
        }
    }
    let columns = [
        ("Job", "id"),
        ("Kind", ""),
        (when, "when"),
        ("Failed", "n"),
        ("Key", "text"),
        ("Last error", "text"),
    ];
    let now = SystemTime::now();
    let cell = |text: Option<&str>, most: usize| {
        text.map_or("–".to_owned(), |text| beginning(text, most))
    };
    let row = |job: &StoredJob| {
        vec![
            of.job(job.id),
            beginning(&job.kind, CELL),
            relative(job.done.unwrap_or(job.due), now),
            job.attempts.to_string(),
            cell(job.key.as_deref(), KEY),
            cell(job.error.as_deref(), CELL),
        ]
    };
    body.push_str(&table(&columns, of.jobs.iter().take(PAGE).map(row)));
    if of.may_change {
        let all = of.link(of.skip, "&all");
        add!(body, "<p><a href=\"{all}\">Choose all on this page</a></p>\n");
        body.push_str(&buttons(&["retry", "delete"]));
        body.push_str("</form>\n");
    }
    body.push_str(&of.links());
    page(title, "", &body)
}

/// The field for the token, and what to do with the chosen jobs.
fn buttons(verbs: &[&str]) -> String {
    let mut html = String::from(
        "<p class=\"change\"><label>Token <input type=\"password\" name=\"token\" required \
        autocomplete=\"current-password\"></label>",
    );
    for verb in verbs {
        let (first, rest) = verb.split_at(1);
        let label = first.to_uppercase() + rest;
        add!(html, " <button formaction=\"/{verb}\">{label}</button>");
    }
    html.push_str("</p>\n");
    html
}

/// All of a job.
pub(super) fn job(job: &StoredJob, may_change: bool) -> String {
    let now = SystemTime::now();
    let mut body = format!("<h1>Job</h1>\n<dl>\n<dt>Id<dd><code>{}</code>\n", job.id);
    let mut row = |name: &str, value: &str| {
        add!(body, "<dt>{name}<dd class=\"value\">{value}\n");
    };
    row("Kind", &format!("<a href=\"/kind?kind={}\">{}</a>", encode(&job.kind), text(&job.kind)));
    row("Key", &job.key.as_deref().map_or("none".to_owned(), text));
    row("State", state(job.state));
    row("Due", &format!("{} ({})", exact(job.due), relative(job.due, now)));
    row("Failed", &format!("{} times", job.attempts));
    if let Some(progress) = &job.progress {
        row("Progress", &text(&table::progress(progress)));
    }
    if let Some(done) = job.done {
        row("Done", &format!("{} ({})", exact(done), relative(done, now)));
        let result = job.result.as_deref().map_or("none".to_owned(), |text| pre(text, usize::MAX));
        row("Result", &result);
    }
    let error = job.error.as_deref().map_or("none".to_owned(), |error| pre(error, usize::MAX));
    row("Last error", &error);
    row("Payload", &pre(&job.payload, LONGEST_PAYLOAD));
    body.push_str("</dl>\n");
    if may_change && job.state != State::Done {
        add!(
            body,
            "<form method=\"post\" autocomplete=\"off\"><input type=\"hidden\" name=\"id\" value=\"{}\">\n",
            job.id
        );
        let verbs: &[&str] =
            if job.state == State::Dead { &["retry", "delete"] } else { &["delete"] };
        body.push_str(&buttons(verbs));
        body.push_str("</form>\n");
    }
    page("Job", "", &body)
}

fn pre(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let rest = text.len() - end;
            format!("<pre>{}</pre>… and {rest} bytes more", lines(&text[..end]))
        }
        None => format!("<pre>{}</pre>", lines(text)),
    }
}

/// What a form has done.
pub(super) fn changed(title: &str, refused: &[JobId], kind: Option<&str>) -> String {
    let mut body = format!("<h1>{}</h1>\n", escape(title));
    if !refused.is_empty() {
        body.push_str("<p>Not there any more, or not dead:</p>\n<ul>\n");
        for id in refused {
            add!(body, "<li><code>{id}</code>\n");
        }
        body.push_str("</ul>\n");
    }
    let kind = kind.map_or(String::new(), |kind| format!("?kind={}", encode(kind)));
    add!(body, "<p><a href=\"/dead{kind}\">Dead jobs</a></p>\n");
    page(title, "", &body)
}
