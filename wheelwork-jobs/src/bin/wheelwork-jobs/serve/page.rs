//! The pages. Each value of the store goes through `html`.

use super::html::{Lines, Short, Text, encode, escape};
use crate::table::{self, exact, relative, short, state};
use http::StatusCode;
use std::fmt::{Arguments, Write};
use std::time::SystemTime;
use wheelwork_jobs::{Glance, JobId, KindStats, State, StoredJob};

/// So many jobs are on a page.
pub(super) const PAGE: usize = 50;

/// A status, a content type and a body.
pub(super) type Answer = (StatusCode, &'static str, String);

/// So many characters of an error, a kind or a key are in a table.
const CELL: usize = 200;

/// So many of a key.
const KEY: usize = 80;

/// So many characters of a payload are shown.
const LONGEST_PAYLOAD: usize = 64 * 1024;

/// The links to the pages beside one.
pub(super) struct Links {
    path: &'static str,
    kind: Option<String>,
    skip: usize,
    has_more: bool,
}

impl Links {
    /// `found` is one more than a page has if there are more.
    pub(super) fn new(path: &'static str, kind: Option<&str>, skip: usize, found: usize) -> Self {
        Self { path, kind: kind.map(str::to_owned), skip, has_more: found > PAGE }
    }

    fn to(&self, skip: usize, more: &str) -> String {
        let kind =
            self.kind.as_deref().map_or(String::new(), |kind| format!("kind={}&", encode(kind)));
        escape(&format!("{}?{kind}skip={skip}{more}", self.path))
    }

    fn html(&self) -> String {
        let mut html = String::new();
        if self.skip > 0 {
            let to = self.to(self.skip.saturating_sub(PAGE), "");
            add(&mut html, format_args!("<a href=\"{to}\" rel=\"prev\">← before</a> "));
        }
        if self.has_more {
            let to = self.to(self.skip + PAGE, "");
            add(&mut html, format_args!("<a href=\"{to}\" rel=\"next\">more →</a>"));
        }
        html
    }
}

pub(super) struct DeadPage<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) jobs: &'a [StoredJob],
    pub(super) links: Links,
    /// Whether all boxes are ticked.
    pub(super) is_chosen: bool,
    pub(super) may_change: bool,
}

/// A `String` takes all that is written.
fn add(html: &mut String, part: Arguments<'_>) {
    let _ = html.write_fmt(part);
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

/// The kinds and their counts.
pub(super) fn kinds(glance: &Glance, refresh: bool) -> String {
    let at = glance.at.unwrap_or_else(SystemTime::now);
    let mut body = String::from("<h1>Kinds of jobs</h1>\n");
    if glance.kinds.is_empty() {
        body.push_str("<p class=\"none\">There are no jobs.</p>\n");
    } else {
        body.push_str(
            "<table class=\"cards\"><thead><tr><th>Kind<th class=\"n\">Waiting<th class=\"n\">Overdue\
            <th class=\"n\">Late by<th class=\"n\">Claimed<th class=\"n\">Dead<th>Next due</thead>\n<tbody>\n",
        );
        for kind in &glance.kinds {
            kind_row(&mut body, kind, glance, at);
        }
        body.push_str("</tbody></table>\n");
    }
    body.push_str("<p class=\"note\">");
    if !glance.all_kinds {
        add(&mut body, format_args!("Only {} kinds of free jobs are shown. ", Glance::MOST_KINDS));
    }
    let again = match refresh {
        true => "Shown again every 10 s. <a href=\"/\">Stop</a>",
        false => "<a href=\"/?refresh\">Show again every 10 s</a>",
    };
    add(&mut body, format_args!("As of {}. A + means at least so many. {again}</p>\n", exact(at)));
    let head = if refresh { "<meta http-equiv=\"refresh\" content=\"10\">\n" } else { "" };
    page("Kinds of jobs", head, &body)
}

fn kind_row(body: &mut String, kind: &KindStats, glance: &Glance, at: SystemTime) {
    let waiting = |n: u64| count(n, n < glance.most_waiting);
    let late = kind.next_due.and_then(|due| at.duration_since(due).ok());
    let late = late.filter(|late| kind.overdue > 0 || late.as_secs() > 0);
    let (warn, bad) = (class_if(kind.overdue > 0, "warn"), class_if(kind.dead > 0, "bad"));
    let name = encode(&kind.kind);
    let dead = match kind.dead {
        0 => count(0, glance.all_dead),
        n => format!("<a href=\"/dead?kind={name}\">{}</a>", count(n, glance.all_dead)),
    };
    let next = kind.next_due.map_or("–".to_owned(), |due| relative(due, at));
    let next = if kind.paused { "paused".to_owned() } else { next };
    add(
        body,
        format_args!(
            "<tr><th scope=\"row\"><a href=\"/kind?kind={name}\">{}</a>\
            <td class=\"n\" data-label=\"Waiting\">{}<td class=\"n{warn}\" data-label=\"Overdue\">{}\
            <td class=\"n{warn}\" data-label=\"Late by\">{}<td class=\"n\" data-label=\"Claimed\">{}\
            <td class=\"n{bad}\" data-label=\"Dead\">{dead}<td class=\"when{}\" data-label=\"Next due\">{next}\n",
            Short(&kind.kind, CELL),
            waiting(kind.waiting),
            waiting(kind.overdue),
            late.map_or("–".to_owned(), |late| short(late.as_secs())),
            count(kind.claimed, glance.all_claimed),
            class_if(kind.paused, "warn"),
        ),
    );
}

fn class_if(holds: bool, class: &str) -> String {
    if holds { format!(" {class}") } else { String::new() }
}

/// Such as `12,345`, with a `+` if there may be more.
fn count(number: u64, is_all: bool) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !is_all {
        text.push('+');
    }
    text
}

/// The first free jobs of a kind.
pub(super) fn kind(kind: &str, jobs: &[StoredJob], links: &Links) -> String {
    let now = SystemTime::now();
    let mut body = format!("<h1>Waiting: {}</h1>\n", Short(kind, CELL));
    add(
        &mut body,
        format_args!("<p><a href=\"/dead?kind={}\">Dead jobs of this kind</a></p>\n", encode(kind)),
    );
    if jobs.is_empty() {
        body.push_str("<p class=\"none\">No jobs are waiting here.</p>\n");
    } else {
        body.push_str(
            "<table class=\"cards\"><thead><tr><th>Job<th>Due<th class=\"n\">Failed<th>Key<th>Last error\
            </thead>\n<tbody>\n",
        );
        for job in jobs.iter().take(PAGE) {
            add(
                &mut body,
                format_args!(
                    "<tr><th scope=\"row\" class=\"id\"><a href=\"/job?id={0}\">{0}</a>\
                    <td class=\"when\" data-label=\"Due\">{1}<td class=\"n\" data-label=\"Failed\">{2}\
                    <td class=\"text\" data-label=\"Key\">{3}<td class=\"text\" data-label=\"Last error\">{4}\n",
                    job.id,
                    relative(job.due, now),
                    job.attempts,
                    key_cell(job),
                    cell(job.error.as_deref()),
                ),
            );
        }
        body.push_str("</tbody></table>\n");
    }
    add(&mut body, format_args!("<p>{}</p>\n", links.html()));
    page("Waiting jobs", "", &body)
}

fn cell(text: Option<&str>) -> String {
    text.map_or("–".to_owned(), |text| Short(text, CELL).to_string())
}

fn key_cell(job: &StoredJob) -> String {
    job.key.as_deref().map_or("–".to_owned(), |key| Short(key, KEY).to_string())
}

/// Dead jobs with their errors, and a form to change them.
pub(super) fn dead(of: &DeadPage<'_>) -> String {
    let mut body = match of.kind {
        Some(kind) => format!("<h1>Dead: {}</h1>\n", Short(kind, CELL)),
        None => "<h1>Dead jobs</h1>\n".to_owned(),
    };
    if of.kind.is_some() {
        body.push_str("<p><a href=\"/dead\">Dead jobs of all kinds</a></p>\n");
    }
    if of.jobs.is_empty() {
        body.push_str("<p class=\"none\">There are none here.</p>\n");
        return page("Dead jobs", "", &body);
    }
    if of.may_change {
        body.push_str("<form method=\"post\" autocomplete=\"off\">\n");
        if let Some(kind) = of.kind {
            let kind = escape(kind);
            add(
                &mut body,
                format_args!("<input type=\"hidden\" name=\"kind\" value=\"{kind}\">\n"),
            );
        }
    }
    body.push_str(
        "<table class=\"cards\"><thead><tr><th>Job<th>Kind<th>Due<th class=\"n\">Failed<th>Key<th>Error\
        </thead>\n<tbody>\n",
    );
    let now = SystemTime::now();
    for job in of.jobs.iter().take(PAGE) {
        let checked = if of.is_chosen { " checked" } else { "" };
        let tick = match of.may_change {
            true => format!(
                "<input type=\"checkbox\" name=\"id\" value=\"{0}\" aria-label=\"{0}\"{checked}> ",
                job.id
            ),
            false => String::new(),
        };
        add(
            &mut body,
            format_args!(
                "<tr><th scope=\"row\" class=\"id\">{tick}<a href=\"/job?id={0}\">{0}</a>\
                <td data-label=\"Kind\">{1}<td class=\"when\" data-label=\"Due\">{2}\
                <td class=\"n\" data-label=\"Failed\">{3}<td class=\"text\" data-label=\"Key\">{4}\
                <td class=\"text\" data-label=\"Error\">{5}\n",
                job.id,
                Short(&job.kind, CELL),
                relative(job.due, now),
                job.attempts,
                key_cell(job),
                cell(job.error.as_deref()),
            ),
        );
    }
    body.push_str("</tbody></table>\n");
    if of.may_change {
        let all = of.links.to(of.links.skip, "&all");
        add(&mut body, format_args!("<p><a href=\"{all}\">Choose all on this page</a></p>\n"));
        body.push_str(&buttons(&["retry", "delete"]));
        body.push_str("</form>\n");
    }
    add(&mut body, format_args!("<p>{}</p>\n", of.links.html()));
    page("Dead jobs", "", &body)
}

/// Jobs that are done.
pub(super) fn done(kind: Option<&str>, jobs: &[StoredJob], links: &Links) -> String {
    let mut body = match kind {
        Some(kind) => format!("<h1>Done: {}</h1>\n", Short(kind, CELL)),
        None => "<h1>Done</h1>\n".to_owned(),
    };
    if jobs.is_empty() {
        body.push_str("<p class=\"none\">There are none here: few kinds keep their jobs.</p>\n");
        return page("Done", "", &body);
    }
    body.push_str(
        "<table class=\"cards\"><thead><tr><th>Job<th>Kind<th>Done<th class=\"n\">Failed<th>Key\
        </thead>\n<tbody>\n",
    );
    let now = SystemTime::now();
    for job in jobs.iter().take(PAGE) {
        add(
            &mut body,
            format_args!(
                "<tr><th scope=\"row\" class=\"id\"><a href=\"/job?id={0}\">{0}</a>\
                <td data-label=\"Kind\"><a href=\"/done?kind={5}\">{1}</a>\
                <td class=\"when\" data-label=\"Done\">{2}\
                <td class=\"n\" data-label=\"Failed\">{3}<td class=\"text\" data-label=\"Key\">{4}\n",
                job.id,
                Short(&job.kind, CELL),
                job.done.map_or("–".to_owned(), |done| relative(done, now)),
                job.attempts,
                key_cell(job),
                encode(&job.kind),
            ),
        );
    }
    body.push_str("</tbody></table>\n");
    add(&mut body, format_args!("<p>{}</p>\n", links.html()));
    page("Done", "", &body)
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
        add(&mut html, format_args!(" <button formaction=\"/{verb}\">{label}</button>"));
    }
    html.push_str("</p>\n");
    html
}

/// All of a job.
pub(super) fn job(job: &StoredJob, may_change: bool) -> String {
    let now = SystemTime::now();
    let mut body = format!("<h1>Job</h1>\n<dl>\n<dt>Id<dd><code>{}</code>\n", job.id);
    let mut row = |name: &str, value: &str| {
        add(&mut body, format_args!("<dt>{name}<dd class=\"value\">{value}\n"));
    };
    row("Kind", &format!("<a href=\"/kind?kind={}\">{}</a>", encode(&job.kind), Text(&job.kind)));
    row("Key", &job.key.as_ref().map_or("none".to_owned(), |key| Text(key).to_string()));
    row("State", state(job.state));
    row("Due", &format!("{} ({})", exact(job.due), relative(job.due, now)));
    row("Failed", &format!("{} times", job.attempts));
    if let Some(progress) = &job.progress {
        row("Progress", &Text(&table::progress(progress)).to_string());
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
        add(
            &mut body,
            format_args!(
                "<form method=\"post\" autocomplete=\"off\">\
                <input type=\"hidden\" name=\"id\" value=\"{}\">\n",
                job.id
            ),
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
            format!("<pre>{}</pre>… and {rest} bytes more", Lines(&text[..end]))
        }
        None => format!("<pre>{}</pre>", Lines(text)),
    }
}

/// What a form has done.
pub(super) fn changed(title: &str, refused: &[JobId], kind: Option<&str>) -> String {
    let mut body = format!("<h1>{}</h1>\n", escape(title));
    if !refused.is_empty() {
        body.push_str("<p>Not there any more, or not dead:</p>\n<ul>\n");
        for id in refused {
            add(&mut body, format_args!("<li><code>{id}</code>\n"));
        }
        body.push_str("</ul>\n");
    }
    let kind = kind.map_or(String::new(), |kind| format!("?kind={}", encode(kind)));
    add(&mut body, format_args!("<p><a href=\"/dead{kind}\">Dead jobs</a></p>\n"));
    page(title, "", &body)
}
