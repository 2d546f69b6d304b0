//! Text in a page. Whatever comes from the store goes through a function of these, and nothing else does.

use crate::table::printable;

/// A text as HTML: without a meaning for the browser, with escapes for characters that are not seen or that
/// turn the order of letters around, and apart from the direction of what is beside it.
pub(super) fn text(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(&printable(text)))
}

/// The beginning of a text.
pub(super) fn beginning(of: &str, most: usize) -> String {
    match of.char_indices().nth(most) {
        Some((end, _)) => format!("<bdi>{}…</bdi>", escape(&printable(&of[..end]))),
        None => text(of),
    }
}

/// Many lines, as they are.
pub(super) fn lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| escape(&printable(line))).collect();
    lines.join("\n")
}

/// The value of an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
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
        assert_eq!(text(hostile), expected);
        assert_eq!(beginning("ééé", 2), "<bdi>éé…</bdi>");
        assert_eq!(beginning("éé", 2), "<bdi>éé</bdi>");
        assert_eq!(lines("a\n<b>\r"), "a\n&lt;b&gt;\\r");
        assert_eq!(encode("a&b=c <ü>"), "a%26b%3Dc+%3C%C3%BC%3E");
    }
}
