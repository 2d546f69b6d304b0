//! The command line, and text on a terminal.

use clap::Parser;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::process::exit;

/// The columns of a plain terminal. Help, errors and tables fit.
pub const COLUMNS: usize = 80;

/// The exit code for a wrong argument, as clap has it.
const USAGE: i32 = 2;

/// Reads the command line. Ends the process if it is wrong, or asks for the help or the version.
pub fn parse<A: Parser>() -> A {
    A::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        eprint!("{}", wrapped(&error.to_string()));
        exit(USAGE)
    })
}

/// Reads an argument that is a number within `range`.
pub fn number(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            format!("expected a whole number from {} to {}", range.start(), range.end())
        })
    }
}

/// Says on standard error why the program gives up.
pub fn report(error: impl Display) {
    eprintln!("{}", wrapped(&format!("error: {error}")));
}

/// Breaks lines at spaces so that they fit the terminal. What follows a break is indented.
pub fn wrapped(text: &str) -> String {
    text.split('\n').map(wrapped_line).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str) -> String {
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    let (mut text, mut width) = (" ".repeat(indent), indent);
    for (number, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && width + 1 + length > COLUMNS {
            text += "\n";
            text += &" ".repeat(indent + 2);
            width = indent + 2;
        } else if number > 0 {
            text.push(' ');
            width += 1;
        }
        text += word;
        width += length;
    }
    text
}
