//! Text in a page. Whatever comes from the store is a [`Text`] there, and nothing else is.

use crate::table::printable;
use std::fmt;

/// A text as HTML: without a meaning for the browser, with escapes for characters that are not seen or that
/// turn the order of letters around, and apart from the direction of what is beside it.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<bdi>{}</bdi>", escape(&printable(self.0)))
    }
}

/// The beginning of a text.
pub(super) struct Short<'a>(pub(super) &'a str, pub(super) usize);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(self.1) {
            Some((end, _)) => write!(f, "<bdi>{}…</bdi>", escape(&printable(&self.0[..end]))),
            None => Text(self.0).fmt(f),
        }
    }
}

/// Many lines, as they are.
pub(super) struct Lines<'a>(pub(super) &'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.0.split('\n').enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}", escape(&printable(line)))?;
        }
        Ok(())
    }
}

/// The value of an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A part of a query.
pub(super) fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_means_anything_to_a_browser() {
        let hostile = "<script>alert('1')</script>\"&\u{202e}cba\0\u{1b}[31m";
        let expected = "<bdi>&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;\\u{202e}cba\\u{0}\
            \\u{1b}[31m</bdi>";
        assert_eq!(Text(hostile).to_string(), expected);
        assert_eq!(Short("ééé", 2).to_string(), "<bdi>éé…</bdi>");
        assert_eq!(Short("éé", 2).to_string(), "<bdi>éé</bdi>");
        assert_eq!(Lines("a\n<b>\r").to_string(), "a\n&lt;b&gt;\\r");
        assert_eq!(encode("a&b=c <ü>"), "a%26b%3Dc+%3C%C3%BC%3E");
    }
}
